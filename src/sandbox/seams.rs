//! Placeholders for rooms that are being built beside this one.

use serde_json::Value;

use super::resources::Resource;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    UpdateStatus,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl FieldValidation {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Warn" => Some(Self::Warn),
            "Ignore" => Some(Self::Ignore),
            "Strict" => Some(Self::Strict),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub causes: Vec<Cause>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: &'static str,
    pub message: String,
    pub field: String,
}

pub fn decode(_: &'static Resource, _: FieldValidation, _: &mut Value) -> Result<Vec<String>, Invalid> {
    Ok(Vec::new())
}

pub fn admit(_: &'static Resource, _: Operation, _: &mut Value, _: Option<&Value>) -> Result<Vec<String>, Invalid> {
    Ok(Vec::new())
}
