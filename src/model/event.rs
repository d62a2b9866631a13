//! What is told to users about an object: the content of a Kubernetes Event, before anybody gives it a name or sends it.

/// `type` of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something expected.
    Normal,
    /// Something that an operator should look at.
    Warning,
}

impl EventType {
    /// The text of the API field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// One thing that happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// `type`.
    pub event_type: EventType,
    /// `reason`, the machine-readable word that users grep for.
    pub reason: &'static str,
    /// `message`, the sentence that users read.
    pub message: String,
    /// Unix minutes of the due instant it speaks of. Set where a repetition for the same instant must be recognised as said
    /// already: the Event is then named `<object>.<reason>.<minutes>`, also by the next leader.
    pub due_minutes: Option<i64>,
}
