//! Actors: supervisor, shards, mailboxes, generic over the object.
