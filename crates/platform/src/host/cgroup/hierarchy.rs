//! Where the groups of a process are: the folders of each hierarchy, from its own group up.

use super::super::system_files::SystemFiles;

/// What `/proc/self/ns/cgroup` links to where no namespace hides groups: `PROC_CGROUP_INIT_INO` of the kernel.
const INITIAL_NAMESPACE: &str = "cgroup:[4026531835]";

#[derive(Debug)]
pub(super) struct Hierarchy {
    /// What it controls in version 1; in version 2 a hierarchy may control anything.
    pub(super) controllers: Option<Vec<String>>,
    /// The folders, that of the process first.
    pub(super) levels: Vec<String>,
    /// Why there may be groups above them.
    pub(super) hidden: Option<String>,
}

/// A folder of a group, and how its version names files.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Level<'a> {
    pub(super) folder: &'a str,
    pub(super) is_version_1: bool,
}

/// Each hierarchy that is in use has a line in `/proc/self/cgroup`, mounted here or not.
pub(super) fn all(files: &SystemFiles) -> Result<Vec<Hierarchy>, String> {
    let text = |path: &str| files.text(path).map_err(|error| error.to_string());
    let groups = text("proc/self/cgroup")?;
    let mounts = text("proc/self/mountinfo")?;
    let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::of).collect();
    let is_initial = files.link("proc/self/ns/cgroup").as_deref() == Some(INITIAL_NAMESPACE);
    let hierarchy = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, group) = (parts.next()?, parts.next()?);
        let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
        let mut found = mounts
            .iter()
            .filter_map(|mount| Some((mount, mount.levels(&names, group)?)));
        let (levels, hidden) = match found.next() {
            Some((mount, levels)) => {
                let top = levels.last().map_or("", String::as_str);
                let is_whole =
                    mount.group.is_empty() && (is_initial || is_root(files, top, names.is_empty()));
                let hidden = (!is_whole).then(|| {
                    let top = files.path(top);
                    format!("groups above {} do not show", top.display())
                });
                (levels, hidden)
            }
            // The root has no limits.
            None if is_initial && group == "/" => (Vec::new(), None),
            None => {
                let hidden = format!("the group {group} of this process does not show");
                (Vec::new(), Some(hidden))
            }
        };
        let names = names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        Some(Hierarchy {
            controllers: (!names.is_empty()).then_some(names),
            levels,
            hidden,
        })
    };
    Ok(groups.lines().filter_map(hierarchy).collect())
}

/// Whether a folder is the root of its hierarchy and not of a namespace: each version has a file there only, or not
/// there.
fn is_root(files: &SystemFiles, folder: &str, is_version_2: bool) -> bool {
    let has = |name: &str| files.path(&format!("{folder}/{name}")).exists();
    match is_version_2 {
        true => has("cgroup.procs") && !has("cgroup.events"),
        false => has("cgroup.sane_behavior"),
    }
}

impl<'a> Level<'a> {
    pub(super) fn file(self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// The name of a file in version 1, or in version 2.
    pub(super) fn name(self, in_version_1: &'a str, in_version_2: &'a str) -> &'a str {
        match self.is_version_1 {
            true => in_version_1,
            false => in_version_2,
        }
    }
}

/// Where a hierarchy of control groups is mounted.
struct Mount<'a> {
    /// The group that shows at the top.
    group: String,
    folder: String,
    /// `None` in version 2.
    controllers: Option<Vec<&'a str>>,
}

impl<'a> Mount<'a> {
    /// Of a line of mountinfo: see `proc_pid_mountinfo(5)`.
    fn of(line: &'a str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (group, folder) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let controllers = match kind.next()? {
            "cgroup" => Some(kind.nth(1)?.split(',').collect()),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Mount {
            group: unescaped(group).trim_end_matches('/').to_owned(),
            folder: unescaped(folder).trim_matches('/').to_owned(),
            controllers,
        })
    }

    /// The folders from that of a group up to the mount; `None` if this is another hierarchy, or the group does not
    /// show.
    fn levels(&self, controllers: &[&str], group: &str) -> Option<Vec<String>> {
        let is_it = match &self.controllers {
            None => controllers.is_empty(),
            Some(these) => controllers.iter().any(|name| these.contains(name)),
        };
        let below = group.strip_prefix(&self.group).filter(|_| is_it)?;
        if !(below.is_empty() || below.starts_with('/')) || below.starts_with("/..") {
            return None;
        }
        let mut folder = format!("{}{}", self.folder, below.trim_end_matches('/'));
        let mut levels = vec![folder.clone()];
        while folder.len() > self.folder.len() {
            folder.truncate(folder.rfind('/')?);
            levels.push(folder.clone());
        }
        Some(levels)
    }
}

/// A name of mountinfo, in which a space, a tab, a line feed and a backslash are octal numbers.
fn unescaped(name: &str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let all = escapes.into_iter();
    all.fold(name.to_owned(), |name, (code, letter)| {
        name.replace(code, letter)
    })
}
