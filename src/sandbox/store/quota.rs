//! What a namespace lets in: it exists, is not going away, and its quotas are not used up.

use serde_json::Value;

use super::Store;
use crate::sandbox::call::Call;
use crate::sandbox::resources::{Resource, find};
use crate::sandbox::status::Refusal;

impl Store {
    /// A create needs its namespace, and one that is not terminating.
    pub(super) fn check_namespace(&self, call: &Call, name: &str) -> Result<(), Refusal> {
        if !call.resource.namespaced {
            return Ok(());
        }
        let Some(namespaces) = find("", "v1", "namespaces") else { return Ok(()) };
        match self.collection(namespaces).and_then(|all| all.get(&call.namespace)) {
            None => Err(Refusal::not_found(namespaces, &call.namespace)),
            Some(namespace) if namespace.deleting => {
                Err(Refusal::namespace_terminating(call.resource, name, &call.namespace))
            }
            Some(_) => Ok(()),
        }
    }

    /// Counts of objects (`count/jobs.batch`, or `pods` and the like for core kinds) stay within every quota of the
    /// namespace. Other hard limits of quotas are not enforced.
    pub(super) fn check_quota(&self, call: &Call, name: &str) -> Result<(), Refusal> {
        if !call.resource.namespaced {
            return Ok(());
        }
        let quotas = find("", "v1", "resourcequotas").and_then(|resource| self.collection(resource));
        for quota in quotas.into_iter().flat_map(|quotas| quotas.range(&call.namespace, None)) {
            let value = quota.value();
            for limited in names_in_quota(call.resource) {
                let Some(hard) = quantity(&value["spec"]["hard"][&limited]) else { continue };
                let used = self.count(call.resource, &call.namespace);
                if used >= hard {
                    let why = format!(
                        "exceeded quota: {}, requested: {limited}=1, used: {limited}={used}, limited: {limited}={hard}",
                        quota.name()
                    );
                    return Err(Refusal::forbidden(call.resource, name, &why));
                }
            }
        }
        Ok(())
    }

    fn count(&self, resource: &Resource, namespace: &str) -> u64 {
        self.collection(resource).map_or(0, |collection| collection.range(namespace, None).count() as u64)
    }
}

fn names_in_quota(resource: &Resource) -> Vec<String> {
    let counted = format!("count/{}", resource.qualified());
    if resource.group.is_empty() { vec![counted, resource.plural.to_owned()] } else { vec![counted] }
}

/// A whole number, as text or number.
fn quantity(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
