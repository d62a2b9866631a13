//! The API server as seen from here: client, write lanes, informers, events.
