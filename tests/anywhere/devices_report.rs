//! The folder of `hcabench devices --report`, on a machine whose devices, if it has any, the test does not know.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Ended, hcabench};
use crate::testing::{Has as _, temporary};

const FILES: [&str; 5] = [
    "devices.json",
    "host.json",
    "ports.json",
    "software.json",
    "README.txt",
];

#[track_caller]
fn written(within: &Path, words: &str) -> Ended {
    let program = hcabench(words).in_folder(within);
    // One that drivers read, and two that are nobody else's business.
    let program = program.env("MLX5_SINGLE_THREADED", "1");
    let program = program.env("IBV_OF_10_77_0_1", "10.77.0.1 52:54:00:77:ab:01");
    program.env("HCABENCH_SECRET_KEY", "do-not-tell").ends(0)
}

fn read(folder: &Path, file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(file)).unwrap()).unwrap()
}

/// The lines of a file of the system, without the characters that are between words.
fn words_of(file: impl AsRef<Path>) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_folder_has_what_there_is_and_no_names_of_the_host() {
    let within = temporary("");
    let ended = written(&within, "devices --report adapter");
    let folder = within.join("adapter");
    let paths = FILES.map(|file| format!("adapter/{file}\n"));
    assert_eq!(ended.stdout, paths.concat());
    let software = read(&folder, "software.json");
    assert_eq!(software["hcabench"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(software["environment"]["MLX5_SINGLE_THREADED"], "1");
    assert_eq!(software["environment"]["IBV_OF_10_77_0_1"], "ipv4-1 mac-1");
    let host = read(&folder, "host.json");
    assert_eq!(host["needs"]["devices"], true);
    assert!(host["checks"].as_array().unwrap().len() > 10);
    // What is not there is said there, and on standard error.
    for file in ["devices.json", "ports.json"] {
        if let Some(error) = read(&folder, file)["error"].as_str() {
            ended.stderr.has(&["missing in the report"]);
            assert!(!error.is_empty());
        }
    }

    // One without a digit may be a word of the program's, which stays.
    let mut real = words_of("/proc/sys/kernel/hostname");
    if !real.is_empty() && real != ["localhost"] {
        assert_eq!(host["machine"]["hostname"], "host-1");
    }
    real.retain(|name| name.contains(|letter: char| letter.is_ascii_digit()));
    for interface in fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten()
    {
        real.extend(words_of(interface.path().join("address")));
    }
    let addresses = nix::ifaddrs::getifaddrs().unwrap();
    for address in addresses.filter_map(|entry| entry.address) {
        let v4 = address.as_sockaddr_in().map(|v4| v4.ip().to_string());
        let v6 = address.as_sockaddr_in6().map(|v6| v6.ip().to_string());
        real.extend(v4.or(v6));
    }
    real.extend(["10.77.0.1", "52:54:00:77:ab:01", "do-not-tell"].map(str::to_owned));
    let everyones = ["00:00:00:00:00:00", "127.0.0.1", "::1", "localhost"];
    real.retain(|word| !everyones.contains(&word.as_str()));
    for file in FILES {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        text.has(
            &["The same address in another report may have another name."].map(|end| {
                if file.ends_with("txt") {
                    "another name."
                } else {
                    end
                }
            }),
        );
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        for word in &real {
            let found = text.match_indices(word.as_str()).find(|(start, _)| {
                !text[..*start].ends_with(is_word)
                    && !text[start + word.len()..].starts_with(is_word)
            });
            // Keys are names that the program gives.
            let is_key = |start: usize| text[start + word.len()..].starts_with("\":");
            assert!(
                found.is_none_or(|(start, _)| is_key(start)),
                "{file} contains {word}"
            );
        }
    }
}

#[test]
fn it_is_made_and_nothing_is_written_into_another() {
    let within = temporary("");
    written(&within, "devices --report");
    let second = written(&within, "devices --json --report").json();
    assert_eq!(second["folder"], "hcabench-devices-2");
    assert_eq!(second["files"][0], "hcabench-devices-2/devices.json");
    assert!(within.join("hcabench-devices/ports.json").exists());
    fs::create_dir(within.join("mine")).unwrap();
    fs::write(within.join("file"), "").unwrap();
    for (words, reason) in [
        ("devices --report mine", "it exists"),
        ("devices --report file/below", "Not a directory"),
        ("devices --report new --brief", "cannot be used with"),
    ] {
        let told = hcabench(words).in_folder(&within).ends(2).stderr;
        told.has(&["--report", reason]);
    }
    assert_eq!(fs::read_dir(within.join("mine")).unwrap().count(), 0);
}
