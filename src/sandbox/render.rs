//! How objects leave the server: one, a list, or inside a watch frame; plain, as a Table, or their metadata alone.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::call::{Call, Form};
use super::events;
use super::resources::Resource;
use super::store::{Object, encode, prefix};
use super::table;
use crate::model::WallTime;

/// What the client asked to see, and when.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The resource of the path; its kind is the kind of the answer.
    pub resource: &'static Resource,
    /// Form of the answer.
    pub form: Form,
    /// `includeObject` of Tables; empty means the default, `Metadata`.
    pub include_object: &'a str,
    /// For ages in Tables.
    pub now: WallTime,
    /// Whether Tables name their columns: in a watch only the first does.
    pub columns: bool,
}

impl<'a> View<'a> {
    /// What a call asks to see.
    pub fn of(call: &'a Call, now: WallTime) -> Self {
        Self {
            resource: call.resource,
            form: call.form,
            include_object: &call.options.include_object,
            now,
            columns: true,
        }
    }

    /// One object.
    pub fn one(&self, object: &Object) -> Bytes {
        match self.form {
            Form::Object => self.plain(object),
            Form::Metadata | Form::MetadataList => partial_metadata(&self.plain(object)).into(),
            Form::Table => self.table(&[self.tree(object)], None).to_string().into(),
        }
    }

    /// A list with its `metadata`, as of `revision`.
    pub fn many(&self, objects: &[Arc<Object>], metadata: &Value, revision: u64) -> Bytes {
        let (kind, version, skip) = match self.form {
            Form::Object => (format!("{}List", self.resource.kind), self.resource.api_version(), self.skipped_head()),
            Form::Metadata | Form::MetadataList => {
                ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned(), 0)
            }
            Form::Table => {
                let trees: Vec<Value> = objects.iter().map(|object| self.tree(object)).collect();
                let mut table = self.table(&trees, Some(&revision.to_string()));
                table["metadata"] = metadata.clone();
                return table.to_string().into();
            }
        };
        let size: usize = objects.iter().map(|object| object.bytes.len() + 1).sum();
        let mut out = Vec::with_capacity(size + 256);
        let head = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{metadata},\"items\":[");
        out.extend_from_slice(head.as_bytes());
        for (index, object) in objects.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            let bytes = self.one(object);
            if skip > 0 {
                out.push(b'{');
            }
            out.extend_from_slice(bytes.get(skip..).unwrap_or_default());
        }
        out.extend_from_slice(b"]}");
        out.into()
    }

    /// Items of built-in lists carry neither kind nor version, as from the real server; those of custom kinds do.
    fn skipped_head(&self) -> usize {
        if self.resource.custom { 0 } else { prefix(self.resource).len() + 1 }
    }

    fn plain(&self, object: &Object) -> Bytes {
        if events::is_view(self.resource) {
            encode(self.resource, Some(object.revision), &self.tree(object))
        } else {
            object.bytes.clone()
        }
    }

    fn tree(&self, object: &Object) -> Value {
        events::to_view(self.resource, object.value())
    }

    fn table(&self, objects: &[Value], list_version: Option<&str>) -> Value {
        let mut table = table::render(self.resource, objects, list_version, self.include_object, self.now);
        if !self.columns {
            table["columnDefinitions"] = Value::Null;
        }
        table
    }
}

/// `PartialObjectMetadata` of an encoded object; the metadata is copied, not decoded.
fn partial_metadata(bytes: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Shell<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let metadata = serde_json::from_slice::<Shell<'_>>(bytes).map_or("{}", |shell| shell.metadata.get());
    format!("{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata}}}")
}

/// A bookmark: an object of the kind that is nothing but a revision. `initial_end` marks the end of the initial events.
pub fn bookmark(resource: &Resource, form: Form, revision: u64, initial_end: bool) -> Value {
    let mut metadata = json!({ "resourceVersion": revision.to_string() });
    if initial_end {
        metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    match form {
        Form::Object => json!({ "kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata }),
        Form::Metadata | Form::MetadataList => {
            json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
        }
        // A Table bookmark has one row: that of an object with nothing but the metadata.
        Form::Table => json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": { "resourceVersion": revision.to_string() },
            "columnDefinitions": null,
            "rows": [{ "cells": table::empty_row(resource), "object": {
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            } }],
        }),
    }
}
