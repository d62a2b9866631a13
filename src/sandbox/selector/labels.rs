//! The text of a label selector, read as the real server reads it: the same grammar, the same complaints.

use super::{LabelTerm, LabelTest};
use crate::sandbox::admission::{label_value, qualified_name};
use crate::schedule::quote;

/// Reads all terms of a selector.
///
/// # Errors
/// What the server says of the first term that cannot be read.
pub(super) fn parse(text: &str) -> Result<Vec<LabelTerm>, String> {
    let mut tokens = Tokens { rest: text };
    let mut terms = Vec::new();
    loop {
        match tokens.peek() {
            Token::End => return Ok(terms),
            Token::Word(_) | Token::Sign("!") => {}
            found => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", found.text())),
        }
        terms.push(term(&mut tokens).map_err(|why| format!("unable to parse requirement: {why}"))?);
        match tokens.next() {
            Token::End => return Ok(terms),
            Token::Sign(",") => match tokens.peek() {
                Token::Word(_) | Token::Sign("!") => {}
                found => return Err(format!("found '{}', expected: identifier after ','", found.text())),
            },
            found => return Err(format!("found '{}', expected: ',' or 'end of string'", found.text())),
        }
    }
}

/// A part of the text. Words are everything between signs and blanks, `in` and `notin` among them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    End,
    Word(&'a str),
    Sign(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::End => "",
            Self::Word(text) | Self::Sign(text) => text,
        }
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

const SIGNS: [&str; 9] = ["!=", "==", "(", ")", ",", "!", "=", ">", "<"];

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return Token::End;
        }
        let sign = SIGNS.into_iter().find(|sign| self.rest.starts_with(sign));
        let length = sign.map_or_else(
            || self.rest.find(|c: char| c.is_whitespace() || "()!=<>,".contains(c)).unwrap_or(self.rest.len()),
            str::len,
        );
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        if sign.is_some() { Token::Sign(token) } else { Token::Word(token) }
    }

    fn peek(&self) -> Token<'a> {
        Tokens { rest: self.rest }.next()
    }
}

fn term(tokens: &mut Tokens<'_>) -> Result<LabelTerm, String> {
    let missing = tokens.peek() == Token::Sign("!");
    if missing {
        tokens.next();
    }
    let Token::Word(key) = tokens.next() else {
        return Err(format!("found '{}', expected: identifier", tokens.peek().text()));
    };
    if let Some(why) = qualified_name(key).first() {
        return Err(format!("key: Invalid value: {}: {why}", quote(key)));
    }
    let test = if missing {
        LabelTest::Missing
    } else if matches!(tokens.peek(), Token::End | Token::Sign(",")) {
        LabelTest::Exists
    } else {
        test(tokens, key)?
    };
    Ok(LabelTerm { key: key.to_owned(), test })
}

fn test(tokens: &mut Tokens<'_>, key: &str) -> Result<LabelTest, String> {
    Ok(match tokens.next() {
        Token::Word("in") => LabelTest::In(checked(set(tokens)?, key)?),
        Token::Word("notin") => LabelTest::NotIn(checked(set(tokens)?, key)?),
        Token::Sign("=" | "==") => LabelTest::In(checked(vec![value(tokens)?], key)?),
        Token::Sign("!=") => LabelTest::NotIn(checked(vec![value(tokens)?], key)?),
        Token::Sign(">") => LabelTest::Above(number(&value(tokens)?)?),
        Token::Sign("<") => LabelTest::Below(number(&value(tokens)?)?),
        found => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", found.text())),
    })
}

/// A list in parentheses. An item may be empty, and so may the list.
fn set(tokens: &mut Tokens<'_>) -> Result<Vec<String>, String> {
    let open = tokens.next();
    if open != Token::Sign("(") {
        return Err(format!("found '{}' expected: '('", open.text()));
    }
    let mut values = Vec::new();
    loop {
        match tokens.next() {
            Token::Word(text) => {
                values.push(text.to_owned());
                match tokens.next() {
                    Token::Sign(",") if tokens.peek() == Token::Sign(")") => values.push(String::new()),
                    Token::Sign(",") => {}
                    Token::Sign(")") => return Ok(values),
                    found => return Err(format!("found '{}', expected: ',' or ')'", found.text())),
                }
            }
            Token::Sign(",") => values.push(String::new()),
            Token::Sign(")") => {
                if values.is_empty() {
                    values.push(String::new());
                }
                return Ok(values);
            }
            found => return Err(format!("found '{}', expected: ',', ')' or identifier", found.text())),
        }
    }
}

/// One value, which may be empty.
fn value(tokens: &mut Tokens<'_>) -> Result<String, String> {
    match tokens.peek() {
        Token::End | Token::Sign(",") => Ok(String::new()),
        Token::Word(text) => {
            tokens.next();
            Ok(text.to_owned())
        }
        found => Err(format!("found '{}', expected: identifier", found.text())),
    }
}

fn checked(values: Vec<String>, key: &str) -> Result<Vec<String>, String> {
    for (index, value) in values.iter().enumerate() {
        if let Some(why) = label_value(value).first() {
            return Err(format!("values[{index}][{key}]: Invalid value: {}: {why}", quote(value)));
        }
    }
    Ok(values)
}

fn number(text: &str) -> Result<i64, String> {
    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
    text.parse().map_err(|_| format!("values[0]: Invalid value: {}: {why}", quote(text)))
}
