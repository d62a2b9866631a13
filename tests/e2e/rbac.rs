//! Each right of the manifest's roles is needed: placeholder until the table is written.
