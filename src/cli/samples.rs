//! The samples of `config/samples`, compiled in, so that the sandbox runs from any folder.

use std::path::Path;

use super::manifests::{self, Manifest};

macro_rules! sample {
    ($name:literal) => {
        ($name, include_str!(concat!("../../config/samples/", $name)))
    };
}

/// Name and text of each file, in the order in which they are created.
const SAMPLES: [(&str, &str); 10] = [
    sample!("00-namespaces.yaml"),
    sample!("allow-metrics.yaml"),
    sample!("daily-etl.yaml"),
    sample!("failing-probe.yaml"),
    sample!("forbid-backup.yaml"),
    sample!("gpu-training.yaml"),
    sample!("invalid-minute.yaml"),
    sample!("replace-report.yaml"),
    sample!("suspended-cleanup.yaml"),
    sample!("zone-newsletter.yaml"),
];

/// All objects of the samples.
///
/// # Errors
/// Never in practice: a test reads them.
pub(super) fn read() -> anyhow::Result<Vec<Manifest>> {
    let mut all = Vec::new();
    for (name, text) in SAMPLES {
        all.extend(manifests::parse(&Path::new("config/samples").join(name), text)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_are_all_files_of_their_folder_in_order() {
        let mut on_disk: Vec<String> = std::fs::read_dir("config/samples")
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".yaml"))
            .collect();
        on_disk.sort();
        assert_eq!(SAMPLES.map(|(name, _)| name).to_vec(), on_disk);
        assert!(read().unwrap().len() >= on_disk.len());
    }
}
