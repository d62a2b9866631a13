//! The API server's word on tokens and rights: TokenReview and SubjectAccessReview, for the secure port.
//!
//! These requests pass by the lanes: they are few (the port caches their answers and asks a handful at a time), and operators
//! look most when the lanes are full.

use futures::future::BoxFuture;
use http::{Method, Request, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::Client;
use kube::client::Body;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::exchange::exchange;
use crate::model::ApiFailure;
use crate::telemetry::{Question, Reviewer, User, Verdict};

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Asks the API server.
#[derive(Clone)]
pub struct Reviews {
    client: Client,
}

impl Reviews {
    /// Reviews through `client`; our user there needs `create` on tokenreviews and subjectaccessreviews.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

impl Reviewer for Reviews {
    fn whose(&self, token: String) -> BoxFuture<'static, Result<Option<User>, ApiFailure>> {
        let client = self.client.clone();
        Box::pin(async move {
            let spec = TokenReviewSpec { token, ..TokenReviewSpec::default() };
            let answer: TokenReview =
                post(&client, TOKEN_REVIEWS, &TokenReview { spec, ..TokenReview::default() }).await?;
            Ok(user(answer.status.unwrap_or_default()))
        })
    }

    fn may(&self, question: Question) -> BoxFuture<'static, Result<Verdict, ApiFailure>> {
        let client = self.client.clone();
        Box::pin(async move {
            let review = SubjectAccessReview { spec: access(question), ..SubjectAccessReview::default() };
            let answer: SubjectAccessReview = post(&client, ACCESS_REVIEWS, &review).await?;
            Ok(verdict(answer.status.unwrap_or_default()))
        })
    }
}

/// Who an authenticated token belongs to. An answer without a name is no user's.
fn user(status: TokenReviewStatus) -> Option<User> {
    let UserInfo { username, uid, groups, extra } = status.user.unwrap_or_default();
    let user = User {
        name: username.filter(|name| !name.is_empty())?,
        uid: uid.unwrap_or_default(),
        groups: groups.unwrap_or_default(),
        extra: extra.unwrap_or_default(),
    };
    (status.authenticated == Some(true)).then_some(user)
}

fn access(question: Question) -> SubjectAccessReviewSpec {
    let Question { user, verb, path } = question;
    SubjectAccessReviewSpec {
        user: Some(user.name),
        uid: Some(user.uid),
        groups: Some(user.groups),
        extra: Some(user.extra),
        non_resource_attributes: Some(NonResourceAttributes { path: Some(path), verb: Some(verb) }),
        ..SubjectAccessReviewSpec::default()
    }
}

/// A denial counts more than a permission, should a server ever send both.
fn verdict(status: SubjectAccessReviewStatus) -> Verdict {
    let allowed = status.allowed && status.denied != Some(true);
    Verdict { allowed, reason: status.reason.unwrap_or_default() }
}

async fn post<T: Serialize, A: DeserializeOwned>(client: &Client, path: &str, review: &T) -> Result<A, ApiFailure> {
    let unreadable = |error: &dyn std::fmt::Display| ApiFailure {
        message: format!("a review cannot be read: {error}").into(),
        ..ApiFailure::default()
    };
    let body = serde_json::to_vec(review).map_err(|error| unreadable(&error))?;
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .map_err(|error| unreadable(&error))?;
    let (_, answer) = exchange(client, request).await?;
    serde_json::from_slice(&answer).map_err(|error| unreadable(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{Server, broken, fixed_body, refusal, reply};
    use serde_json::{Value, json};

    fn answering(answer: Value) -> (Server, Reviews) {
        let server = Server::default();
        server.answer(move |_| reply(201, fixed_body(&[&answer.to_string()])));
        let reviews = Reviews::new(server.client());
        (server, reviews)
    }

    fn token_review(status: Value) -> Value {
        json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": {}, "status": status})
    }

    fn question() -> Question {
        let extra = [("scopes".to_owned(), vec!["a".to_owned()])].into();
        let user = User { name: "jo".into(), uid: "7".into(), groups: vec!["ops".into()], extra };
        Question { user, verb: "get".into(), path: "/metrics".into() }
    }

    #[tokio::test]
    async fn a_token_is_sent_and_its_user_read() {
        let user = json!({"username": "jo", "uid": "7", "groups": ["ops"], "extra": {"scopes": ["a"]}});
        let (server, reviews) = answering(token_review(json!({"authenticated": true, "user": user})));
        assert_eq!(reviews.whose("secret".into()).await, Ok(Some(question().user)));
        let seen = &server.seen()[0];
        assert_eq!((seen.method.as_str(), seen.uri.as_str()), ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"));
        assert_eq!(serde_json::from_str::<Value>(&seen.body).unwrap()["spec"], json!({"token": "secret"}));
    }

    #[tokio::test]
    async fn a_token_that_is_not_authenticated_is_nobodys() {
        for status in [
            json!({"user": {}, "error": "[invalid bearer token]"}),
            json!({"authenticated": false, "user": {"username": "jo"}}),
            json!({"authenticated": true, "user": {}}),
            json!({}),
        ] {
            let (_server, reviews) = answering(token_review(status.clone()));
            assert_eq!(reviews.whose("x".into()).await, Ok(None), "{status}");
        }
    }

    #[tokio::test]
    async fn a_right_is_asked_for_with_all_that_is_known_of_the_user() {
        let answer = json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {},
            "status": {"allowed": true, "reason": "RBAC: allowed"}});
        let (server, reviews) = answering(answer);
        let expected = Verdict { allowed: true, reason: "RBAC: allowed".into() };
        assert_eq!(reviews.may(question()).await, Ok(expected));
        let seen = &server.seen()[0];
        assert_eq!(seen.uri, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
        let spec = json!({"user": "jo", "uid": "7", "groups": ["ops"], "extra": {"scopes": ["a"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"}});
        assert_eq!(serde_json::from_str::<Value>(&seen.body).unwrap()["spec"], spec);
    }

    #[tokio::test]
    async fn only_a_plain_yes_is_a_yes() {
        for status in [json!({"allowed": false}), json!({"allowed": true, "denied": true})] {
            let answer = json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {},
                "status": status.clone()});
            let (_server, reviews) = answering(answer);
            assert!(!reviews.may(question()).await.unwrap().allowed, "{status}");
        }
    }

    #[tokio::test]
    async fn a_refusal_a_broken_connection_and_nonsense_are_failures() {
        let server = Server::default();
        server.answer(|_| refusal(403, "Forbidden", 0));
        server.answer(|_| broken());
        server.answer(|_| reply(200, fixed_body(&["<html>"])));
        let reviews = Reviews::new(server.client());
        assert_eq!(reviews.whose("x".into()).await.unwrap_err().code, 403);
        assert!(reviews.may(question()).await.unwrap_err().is_ambiguous());
        assert!(reviews.whose("x".into()).await.unwrap_err().is_ambiguous());
    }
}
