//! Control groups: limits that the system enforces for all processes of a tenant together, in the unified
//! hierarchy (version 2) and in separate ones (version 1).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The limits of a tenant; what is absent is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Bytes of memory, swap included.
    pub memory: Option<u64>,
    /// The number of processes and threads.
    pub pids: Option<u64>,
    /// Thousandths of a processor.
    pub cpu: Option<u64>,
}

/// The length of the period for which processor time is counted, in microseconds.
const CPU_PERIOD: u64 = 100_000;

const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

/// A hierarchy of control groups and the place of this process in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    directory: PathBuf,
    /// The controllers of a separate hierarchy; empty for the unified one.
    controllers: Vec<String>,
}

impl Hierarchy {
    fn is_unified(&self) -> bool {
        self.controllers.is_empty()
    }

    fn has_controller(&self, controller: &str) -> bool {
        if !self.is_unified() {
            return self.controllers.iter().any(|name| name == controller);
        }
        let offered = fs::read_to_string(self.directory.join("cgroup.controllers")).unwrap_or_default();
        offered.split_whitespace().any(|name| name == controller)
    }
}

/// The control groups of a hub's tenants. They are removed with this value; the next hub removes those of a
/// killed one.
#[derive(Debug)]
pub struct ControlGroups {
    /// For each controller the hierarchy that has it.
    hierarchies: Vec<(&'static str, Hierarchy)>,
    prefix: String,
    groups: BTreeMap<String, (ResourceLimits, Vec<PathBuf>)>,
    /// The group to which this process moved.
    own: Option<PathBuf>,
}

impl ControlGroups {
    /// Finds the control groups of this process. Fails if it cannot make groups for others there.
    pub fn open() -> io::Result<Self> {
        let read = |name: &str| fs::read_to_string(Path::new("/proc/self").join(name));
        let found = find_hierarchies(&read("cgroup")?, &read("mountinfo")?);
        Self::in_hierarchies(&found, std::process::id())
    }

    fn in_hierarchies(found: &[Hierarchy], process: u32) -> io::Result<Self> {
        let mut hierarchies = Vec::new();
        for controller in CONTROLLERS {
            let hierarchy = found.iter().find(|hierarchy| hierarchy.has_controller(controller));
            let missing =
                || io::Error::other(format!("there is no control group with the controller {controller}"));
            hierarchies.push((controller, hierarchy.ok_or_else(missing)?.clone()));
        }
        let prefix = format!("qwen-{process}");
        let mut groups = Self { hierarchies, prefix, groups: BTreeMap::new(), own: None };
        for (_, hierarchy) in &groups.hierarchies {
            remove_groups_of_ended_hubs(&hierarchy.directory);
        }
        groups.delegate()?;
        Ok(groups)
    }

    /// Offers the controllers of the unified hierarchy to groups below this process's. Only a group without
    /// processes can do that, so this process moves to another group below.
    fn delegate(&mut self) -> io::Result<()> {
        let unified = |(name, hierarchy): &(&'static str, Hierarchy)| {
            hierarchy.is_unified().then(|| (*name, hierarchy.directory.clone()))
        };
        let wanted: Vec<(&str, PathBuf)> = self.hierarchies.iter().filter_map(unified).collect();
        let Some((_, directory)) = wanted.first().cloned() else { return Ok(()) };
        // The root of the hierarchy has no type, and may have both processes and groups.
        if directory.join("cgroup.type").exists() {
            let own = directory.join(format!("{}.hub", self.prefix));
            make_group(&own)?;
            write(&own.join("cgroup.procs"), "0")?;
            self.own = Some(own);
        }
        for (name, directory) in wanted {
            write(&directory.join("cgroup.subtree_control"), &format!("+{name}")).map_err(|error| {
                let place = directory.display();
                io::Error::other(format!(
                    "{error}; the hub needs the control group {place} for itself (for systemd: Delegate=yes)"
                ))
            })?;
        }
        Ok(())
    }

    /// Makes a tenant's group or changes its limits. Returns the files that take its processes.
    pub fn limit(&mut self, tenant: &str, limits: ResourceLimits) -> io::Result<Vec<PathBuf>> {
        if let Some((former, files)) = self.groups.get(tenant)
            && *former == limits
        {
            return Ok(files.clone());
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for (controller, hierarchy) in &self.hierarchies {
            let group = hierarchy.directory.join(format!("{}-{tenant}", self.prefix));
            make_group(&group)?;
            for (name, value) in values(controller, limits, hierarchy.is_unified()) {
                match write(&group.join(name), &value) {
                    // Where swap is not counted, there is no such limit.
                    Err(error) if error.kind() == io::ErrorKind::NotFound && name.contains("sw") => {}
                    written => written?,
                }
            }
            files.push(group.join("cgroup.procs"));
        }
        files.dedup();
        self.groups.insert(tenant.to_owned(), (limits, files.clone()));
        Ok(files)
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        // A group whose processes are about to end stays for the next hub to remove.
        for file in self.groups.values().flat_map(|(_, files)| files) {
            let _ = file.parent().map(fs::remove_dir);
        }
    }
}

/// The files of a group and what to write to them. Memory comes before memory with swap, which cannot be less.
fn values(controller: &str, limits: ResourceLimits, is_unified: bool) -> Vec<(&'static str, String)> {
    let bytes =
        limits.memory.map_or_else(|| if is_unified { "max" } else { "-1" }.to_owned(), |n| n.to_string());
    let quota = limits.cpu.map(|thousandths| (thousandths * CPU_PERIOD / 1000).max(1000));
    match (controller, is_unified) {
        ("memory", true) => {
            let swap = if limits.memory.is_some() { "0" } else { "max" };
            vec![("memory.max", bytes), ("memory.swap.max", swap.to_owned())]
        }
        ("memory", false) => {
            vec![("memory.limit_in_bytes", bytes.clone()), ("memory.memsw.limit_in_bytes", bytes)]
        }
        ("pids", _) => vec![("pids.max", limits.pids.map_or_else(|| "max".to_owned(), |n| n.to_string()))],
        ("cpu", true) => {
            let quota = quota.map_or_else(|| "max".to_owned(), |quota| quota.to_string());
            vec![("cpu.max", format!("{quota} {CPU_PERIOD}"))]
        }
        ("cpu", false) => {
            let quota = quota.map_or_else(|| "-1".to_owned(), |quota| quota.to_string());
            vec![("cpu.cfs_period_us", CPU_PERIOD.to_string()), ("cpu.cfs_quota_us", quota)]
        }
        _ => Vec::new(),
    }
}

/// The hierarchies, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn find_hierarchies(groups: &str, mounts: &str) -> Vec<Hierarchy> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(names), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let controllers: Vec<String> =
            names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let directory = mounts.lines().find_map(|mount| place_in_mount(mount, &controllers, path));
        found.extend(directory.map(|directory| Hierarchy { directory, controllers }));
    }
    found
}

/// The directory of the group `path` if the mount shows its hierarchy.
fn place_in_mount(mount: &str, controllers: &[String], path: &str) -> Option<PathBuf> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, directory) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let name = kind.next()?;
    let options = kind.next_back()?;
    let is_meant = match controllers.first() {
        None => name == "cgroup2",
        Some(first) => name == "cgroup" && options.split(',').any(|option| option == first),
    };
    // A mount of a part of the hierarchy shows the group relative to that part.
    let below = Path::new(path).strip_prefix(root).or_else(|_| Path::new(path).strip_prefix("/")).ok()?;
    (is_meant && !below.starts_with("..")).then(|| Path::new(directory).join(below))
}

fn make_group(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(|error| io::Error::other(format!("{}: {error}", directory.display()))),
    }
}

fn write(file: &Path, value: &str) -> io::Result<()> {
    let written = fs::OpenOptions::new().write(true).open(file).and_then(|file| {
        rustix::io::write(&file, value.as_bytes())?;
        Ok(())
    });
    written.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}

/// Removes empty groups whose hub has ended.
fn remove_groups_of_ended_hubs(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let hub = name.to_str().and_then(|name| name.strip_prefix("qwen-"));
        let hub = hub.and_then(|rest| rest.split(['-', '.']).next()).filter(|hub| hub.parse::<u32>().is_ok());
        if hub.is_some_and(|hub| !Path::new("/proc").join(hub).exists()) {
            // One with processes is refused by the system.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEPARATE: &str = "9:name=systemd:/\n8:pids:/\n4:memory:/api/a1\n1:cpu,cpuacct:/\n0::/\n";
    const MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 /api /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_groups_of_a_process_are_found_in_both_kinds_of_hierarchies() {
        let found = find_hierarchies(SEPARATE, MOUNTS);
        let place = |name: &str| {
            found
                .iter()
                .find(|one| one.controllers.iter().any(|c| c == name))
                .map(|one| one.directory.clone())
        };
        assert_eq!(place("memory").unwrap(), Path::new("/sys/fs/cgroup/memory/a1"));
        assert_eq!(place("pids").unwrap(), Path::new("/sys/fs/cgroup/pids"));
        assert_eq!(place("cpu").unwrap(), Path::new("/sys/fs/cgroup/cpu"));
        assert!(found.iter().any(|one| one.is_unified() && one.directory.ends_with("unified")));
        let unified = find_hierarchies(
            "0::/system.slice/qwen.service\n",
            "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        assert_eq!(unified[0].directory, Path::new("/sys/fs/cgroup/system.slice/qwen.service"));
    }

    #[test]
    fn a_unified_group_offers_its_controllers_and_gets_the_limits_of_each_tenant() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().to_owned();
        fs::write(directory.join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
        fs::write(directory.join("cgroup.subtree_control"), "").unwrap();
        let group = directory.join("qwen-7-red");
        fs::create_dir(&group).unwrap();
        for name in ["memory.max", "pids.max", "cpu.max", "cgroup.procs"] {
            fs::write(group.join(name), "").unwrap();
        }
        let hierarchy = Hierarchy { directory, controllers: Vec::new() };
        let mut groups = ControlGroups::in_hierarchies(&[hierarchy], 7);
        let groups = groups.as_mut().unwrap();
        // Read before the group of an ended hub is looked for.
        let limits = ResourceLimits { memory: Some(1 << 20), pids: Some(8), cpu: Some(1500) };
        fs::create_dir_all(&group).unwrap();
        let files = groups.limit("red", limits).unwrap();
        assert_eq!(files, [group.join("cgroup.procs")]);
        let read = |name: &str| fs::read_to_string(group.join(name)).unwrap();
        assert_eq!(
            (read("memory.max"), read("pids.max"), read("cpu.max")),
            ("1048576".into(), "8".into(), "150000 100000".into())
        );
    }

    #[test]
    fn limits_of_separate_hierarchies_have_their_own_names() {
        let limits = ResourceLimits { memory: Some(9), pids: None, cpu: Some(250) };
        assert_eq!(values("memory", limits, false)[0], ("memory.limit_in_bytes", "9".to_owned()));
        assert_eq!(values("pids", limits, false), [("pids.max", "max".to_owned())]);
        assert_eq!(values("cpu", limits, false)[1], ("cpu.cfs_quota_us", "25000".to_owned()));
        assert_eq!(values("cpu", ResourceLimits::default(), false)[1].1, "-1");
    }
}
