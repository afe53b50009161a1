//! Settings profiles: settings that apply only to one client's sessions.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde_json::{Map, Value, json};

use super::{ConfigError, invalid_value, object};
use crate::process_manager::TenantUser;

/// The layers of a profile and the variables that name their files.
const LAYERS: [(&str, &str); 4] = [
    ("system", "QWEN_CODE_SYSTEM_SETTINGS_PATH"),
    ("system_defaults", "QWEN_CODE_SYSTEM_DEFAULTS_PATH"),
    ("user", "QWEN_CODE_USER_SETTINGS_PATH"),
    ("workspace", "QWEN_CODE_WORKSPACE_SETTINGS_PATH"),
];

/// Validates the shape of a profile: layers are objects or paths, overrides are values by dotted key.
pub(super) fn checked(key: &str, profile: &Value) -> Result<Value, ConfigError> {
    for (layer, value) in object(key, profile)? {
        let key = format!("{key}.{layer}");
        match layer.as_str() {
            "overrides" => {
                object(&key, value)?;
            }
            layer if LAYERS.iter().any(|(name, _)| *name == layer) => {
                if !(value.is_object() || value.is_string()) {
                    return Err(invalid_value(
                        &key,
                        "it must be an object of settings or the path of a file",
                    ));
                }
            }
            _ => {
                return Err(invalid_value(
                    &key,
                    "a profile has system, system_defaults, user, workspace and overrides",
                ));
            }
        }
    }
    Ok(profile.clone())
}

/// The profile's keys without its values, which may be secret; for logs.
pub fn redacted(profile: &Value) -> Value {
    match profile {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), redacted(value))).collect(),
        Value::Array(items) => json!(format!("[{} values]", items.len())),
        Value::Null => Value::Null,
        _ => json!("…"),
    }
}

/// The private directory of a hub, for its profiles and other private files. Removed when the hub ends; the
/// next hub removes the directory of a killed one.
#[derive(Debug)]
pub struct ProfileDirectory {
    path: PathBuf,
    /// Locked while the directory is in use.
    _lock: File,
    profiles: u64,
}

impl ProfileDirectory {
    /// Creates a new directory below `parent` and removes those of ended hubs.
    pub fn create(parent: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        remove_profiles_of_ended_hubs(parent);
        let path = parent.join(format!("{:016x}", fastrand::u64(..)));
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join("lock"))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock, profiles: 0 })
    }

    /// Writes a profile and returns the variables and flags that make a worker use it.
    /// Workers that run as `user` can read it.
    pub fn write(
        &mut self,
        profile: &Value,
        user: Option<TenantUser>,
    ) -> Result<(Vec<(String, String)>, Vec<String>), ConfigError> {
        let profile = checked("settings_profile", profile)?;
        self.profiles += 1;
        let directory = self.path.join(format!("profile-{}", self.profiles));
        let unwritable = |source| ConfigError::Unreadable { path: directory.clone(), source };
        DirBuilder::new().mode(0o700).create(&directory).map_err(unwritable)?;
        let mut variables = Vec::new();
        for (layer, variable) in LAYERS {
            let path = match profile.get(layer) {
                Some(Value::String(path)) => PathBuf::from(path),
                // An absent layer is empty: nothing is read from shared locations.
                settings => {
                    let path = directory.join(format!("{layer}.json"));
                    let empty = json!({});
                    write_private(&path, settings.unwrap_or(&empty)).map_err(unwritable)?;
                    path
                }
            };
            variables.push((variable.to_owned(), path.to_string_lossy().into_owned()));
        }
        let mut flags = Vec::new();
        if let Some(Value::Object(overrides)) = profile.get("overrides") {
            let path = directory.join("overrides.json");
            write_private(&path, &Value::Object(nested(overrides))).map_err(unwritable)?;
            flags = vec!["--settings".to_owned(), path.to_string_lossy().into_owned()];
        }
        if let Some(user) = user {
            share_with(&directory, user).map_err(unwritable)?;
        }
        Ok((variables, flags))
    }
}

impl Drop for ProfileDirectory {
    fn drop(&mut self) {
        // The next hub removes what cannot be removed now.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Lets a tenant's user read a directory of files that stay ours.
fn share_with(directory: &Path, user: TenantUser) -> io::Result<()> {
    let share = |path: &Path, mode: u32| {
        std::os::unix::fs::chown(path, None, Some(user.gid))?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    for entry in fs::read_dir(directory)? {
        share(&entry?.path(), 0o640)?;
    }
    share(directory, 0o750)
}

fn write_private(path: &Path, settings: &Value) -> io::Result<()> {
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
    file.write_all(settings.to_string().as_bytes())
}

/// `{"model.name": x}` as `{"model": {"name": x}}`.
fn nested(overrides: &Map<String, Value>) -> Map<String, Value> {
    let mut root = Map::new();
    for (key, value) in overrides {
        let mut at = &mut root;
        let mut names = key.split('.').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                at.insert(name.to_owned(), value.clone());
                break;
            }
            let inner = at.entry(name.to_owned()).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            let Value::Object(inner) = inner else { break };
            at = inner;
        }
    }
    root
}

/// Removes the directories of ended hubs, whose lock is free.
pub(super) fn remove_profiles_of_ended_hubs(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let lock = entry.path().join("lock");
        let Ok(file) = OpenOptions::new().write(true).open(&lock) else { continue };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_private_and_gone_with_its_hub_or_the_next_one() {
        let parent = tempfile::tempdir().unwrap();
        let mut profiles = ProfileDirectory::create(parent.path()).unwrap();
        let profile = json!({"user": {"a": 1}, "overrides": {"model.name": "x", "model.maxRetries": 2}});
        let (variables, flags) = profiles.write(&profile, None).unwrap();
        assert_eq!(variables.len(), 4);
        let user = &variables.iter().find(|(name, _)| name.contains("USER")).unwrap().1;
        assert_eq!(fs::read_to_string(user).unwrap(), r#"{"a":1}"#);
        assert_eq!(fs::metadata(user).unwrap().permissions().mode() & 0o777, 0o600);
        let directory = Path::new(user).parent().unwrap();
        assert_eq!(fs::metadata(directory).unwrap().permissions().mode() & 0o777, 0o700);
        let overrides: Value = serde_json::from_str(&fs::read_to_string(&flags[1]).unwrap()).unwrap();
        assert_eq!(overrides, json!({"model": {"name": "x", "maxRetries": 2}}));
        let path = profiles.path.clone();
        drop(profiles);
        assert!(!path.exists());
        // A directory of a killed hub: the lock is free and the files still exist.
        fs::create_dir(parent.path().join("dead")).unwrap();
        fs::write(parent.path().join("dead").join("lock"), "").unwrap();
        let next = ProfileDirectory::create(parent.path()).unwrap();
        assert!(!parent.path().join("dead").exists());
        let third = ProfileDirectory::create(parent.path()).unwrap();
        assert!(next.path.exists(), "one that lives is left alone");
        drop(third);
    }

    #[test]
    fn only_the_keys_of_a_profile_are_shown() {
        let profile = json!({"user": {"model": {"apiKey": "secret", "tools": ["a", "b"]}}});
        assert_eq!(
            redacted(&profile).to_string(),
            r#"{"user":{"model":{"apiKey":"…","tools":"[2 values]"}}}"#
        );
    }
}
