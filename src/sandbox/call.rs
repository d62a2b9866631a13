//! A request, understood: which verb on which resource, with the options that the API knows. Pure parsing, no store.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri, header};

use super::options::Options;
use super::resources::{self, Resource};
use super::status::Refusal;

/// What a request does, in the API server's own words (as in RBAC rules and metrics).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// A stream of changes.
    Watch,
    /// A new object.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// One object goes.
    Delete,
    /// All selected objects go.
    DeleteCollection,
}

impl Verb {
    /// Whether it can change the store.
    pub fn writes(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        })
    }
}

/// The part of an object that a request addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subresource {
    /// The object itself.
    Main,
    /// `/status`.
    Status,
    /// `/log` of a Pod.
    Log,
}

impl Subresource {
    /// As it stands in a path; empty for the object itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Log => "log",
        }
    }
}

/// In which form the client wants objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Object,
    /// `meta.k8s.io/v1` Table, what `kubectl get` asks for.
    Table,
    /// `meta.k8s.io/v1` PartialObjectMetadata.
    Metadata,
    /// `meta.k8s.io/v1` PartialObjectMetadataList, which only lists have.
    MetadataList,
}

/// One request on a served resource.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is done.
    pub verb: Verb,
    /// To which kind.
    pub resource: &'static Resource,
    /// Namespace of the path; empty for cluster-scoped kinds and for "all namespaces".
    pub namespace: String,
    /// Name of the path; empty for collections.
    pub name: String,
    /// Part of the object.
    pub subresource: Subresource,
    /// Query parameters.
    pub options: Options,
    /// Form of the answer.
    pub form: Form,
    /// `Content-Type` without parameters; empty if none was sent.
    pub content_type: String,
    /// The body as sent.
    pub body: Bytes,
}

/// Where a path leads.
#[derive(Debug)]
pub enum Route {
    /// To a resource.
    Resource(Box<Call>),
    /// To something else the server may know: discovery, health, OpenAPI.
    Outside,
}

impl Call {
    /// Reads a request line and its headers. The body is filled in later by the caller.
    ///
    /// # Errors
    /// The refusal to answer with: 404, 405, 406 or 400 for options that cannot be read.
    pub fn parse(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Route, Refusal> {
        let Some(target) = Target::parse(uri.path())? else { return Ok(Route::Outside) };
        let options = Options::parse(uri)?;
        let named = !target.name.is_empty();
        let verb = match (method.as_str(), named) {
            ("GET" | "HEAD", true) => Verb::Get,
            ("GET" | "HEAD", false) if options.watch => Verb::Watch,
            ("GET" | "HEAD", false) => Verb::List,
            ("POST", false) => Verb::Create,
            ("PUT", true) => Verb::Update,
            ("PATCH", true) => Verb::Patch,
            ("DELETE", true) => Verb::Delete,
            ("DELETE", false) => Verb::DeleteCollection,
            _ => return Err(Refusal::method_not_allowed()),
        };
        let served = match target.subresource {
            Subresource::Main => true,
            Subresource::Status => matches!(verb, Verb::Get | Verb::Update | Verb::Patch),
            Subresource::Log => verb == Verb::Get,
        };
        let across_namespaces = target.resource.namespaced && target.namespace.is_empty();
        if !served || (across_namespaces && !matches!(verb, Verb::List | Verb::Watch)) {
            return Err(Refusal::method_not_allowed());
        }
        if verb == Verb::DeleteCollection && target.resource.plural == "namespaces" {
            return Err(Refusal::method_not_allowed());
        }
        options.check(verb)?;
        let form = if target.subresource == Subresource::Log { Form::Object } else { accepted_form(headers)? };
        if form == Form::Table && !matches!(options.include_object.as_str(), "" | "None" | "Metadata" | "Object") {
            return Err(Refusal::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \"{}\": must be 'Metadata', \
                 'Object', 'None', or empty",
                options.include_object
            )));
        }
        Ok(Route::Resource(Box::new(Call {
            verb,
            resource: target.resource,
            namespace: target.namespace.to_owned(),
            name: target.name.to_owned(),
            subresource: target.subresource,
            options,
            form,
            content_type: content_type(headers),
            body: Bytes::new(),
        })))
    }
}

struct Target<'a> {
    resource: &'static Resource,
    namespace: &'a str,
    name: &'a str,
    subresource: Subresource,
}

impl<'a> Target<'a> {
    /// `None`: not a path below a version of a group that is served.
    fn parse(path: &'a str) -> Result<Option<Self>, Refusal> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return Ok(None),
        };
        if !resources::has_group(group) {
            return Ok(None);
        }
        let find = |plural: &str| resources::find(group, version, plural).ok_or_else(Refusal::no_such_path);
        let (resource, namespace, name, sub) = match *rest {
            ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
                (find("namespaces")?, "", name, sub)
            }
            ["namespaces", namespace, plural] => (find(plural)?, namespace, "", ""),
            ["namespaces", namespace, plural, name] => (find(plural)?, namespace, name, ""),
            ["namespaces", namespace, plural, name, sub] => (find(plural)?, namespace, name, sub),
            [plural] => (find(plural)?, "", "", ""),
            [plural, name] => (find(plural)?, "", name, ""),
            [plural, name, sub] => (find(plural)?, "", name, sub),
            _ => return Err(Refusal::no_such_path()),
        };
        let subresource = match sub {
            "" => Subresource::Main,
            "status" if resource.status => Subresource::Status,
            "log" if resource.plural == "pods" => Subresource::Log,
            _ => return Err(Refusal::no_such_path()),
        };
        let scope_fits =
            if namespace.is_empty() { !resource.namespaced || name.is_empty() } else { resource.namespaced };
        if !scope_fits {
            return Err(Refusal::no_such_path());
        }
        Ok(Some(Target { resource, namespace, name, subresource }))
    }
}

fn content_type(headers: &HeaderMap) -> String {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The first form among the accepted ones that the server can write.
fn accepted_form(headers: &HeaderMap) -> Result<Form, Refusal> {
    let Some(accept) = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(Form::Object);
    };
    let mut json = false;
    for choice in accept.split(',') {
        let mut parts = choice.split(';').map(str::trim);
        if !matches!(parts.next(), Some("application/json" | "application/*" | "*/*")) {
            continue;
        }
        json = true;
        let parameters: Vec<&str> = parts.collect();
        let parameter = |name: &str| parameters.iter().find_map(|parameter| parameter.strip_prefix(name));
        let known = matches!(parameter("v="), None | Some("v1" | "v1beta1"));
        match parameter("as=") {
            None => return Ok(Form::Object),
            Some("Table") if known => return Ok(Form::Table),
            Some("PartialObjectMetadata") if known => return Ok(Form::Metadata),
            Some("PartialObjectMetadataList") if known => return Ok(Form::MetadataList),
            Some(_) => {}
        }
    }
    Err(if json { Refusal::no_such_form() } else { Refusal::not_acceptable() })
}
