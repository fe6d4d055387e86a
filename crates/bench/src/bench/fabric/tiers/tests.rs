use super::*;

fn ranks(hosts: &str) -> Vec<Option<Endpoint>> {
    hosts
        .split(' ')
        .map(|host| Some(Endpoint::of_host(host)))
        .collect()
}

fn of_first(tiers: &Tiers) -> Vec<&str> {
    (1..tiers.nodes())
        .map(|to| tiers.name(tiers.of(0, to)))
        .collect()
}

fn topology(text: &str) -> TierSource {
    TierSource::File(TierFile::topology(text, Path::new("")).unwrap())
}

/// Printed by `ibnetdiscover` 44.0 of a subnet that `ibsim` 0.10 simulated: two pods of two leaves and two spines, and a
/// core; n1 has two adapters at one leaf, n6 an adapter with two ports.
const IBSIM: &str = include_str!("ibsim.txt");
const CONF: &str = "# two pods\n\
    SwitchName=leaf1 Nodes=n[1-2] LinkSpeed=9\nswitchname=leaf2 nodes=n[3-4]\n\n\
    SwitchName=leaf3 \\\n   Nodes=n[5,6] # goes on\nSwitchName=leaf4 Nodes=n7,n8\n\
    SwitchName=pod1 Switches=leaf[1-2] # above\nSwitchName=pod2 Switches=leaf3,leaf4\n\
    SwitchName=core1 Switches=pod[1-2]\n";
const GROUPS: &str = "n[1-2] core1.pod1.leaf1\nn[3-4] core1.pod1.leaf2 # a comment\n\nn[5-6] core1.pod2.leaf3\n\
    n[7-8] core1.pod2.leaf4\n";

#[test]
fn all_sources_have_one_scale() {
    let (near, pod, far) = ("leaf", "up-1", "up-2");
    for (source, name) in [
        (topology(IBSIM), "ibnetdiscover"),
        (topology(CONF), "topology.conf"),
        (
            TierSource::File(TierFile::groups(GROUPS, Path::new("")).unwrap()),
            "--group",
        ),
    ] {
        let TierSource::File(file) = &source else {
            unreachable!()
        };
        assert_eq!(file.hosts().join(" "), "n1 n2 n3 n4 n5 n6 n7 n8", "{name}");
        let tiers = Tiers::of_ranks(&ranks("n1 n2 n3 n4.example.org n5 n6 n7 n8"), &source);
        assert_eq!(
            of_first(&tiers),
            [near, pod, pod, far, far, far, far],
            "{name}"
        );
        assert_eq!(tiers.pairs(), [(near, 4), (pod, 8), (far, 16)], "{name}");
        assert_eq!((file.source(), tiers.source()), (name, name));
        assert!(!tiers.has_unknown() && tiers.unknown().is_empty());
        assert!(tiers.group(0) == tiers.group(1) && tiers.group(0) != tiers.group(2));
    }
}

#[test]
fn a_host_that_the_source_does_not_name_is_in_no_tier() {
    let with_one = [ranks("n1 n2 n9 n9"), vec![None]].concat();
    let address = |leaf: &str| Some(format!("core1.pod1.{leaf}.n"));
    let addresses = vec![address("leaf1"), address("leaf1"), None, None, None];
    for source in [
        topology(IBSIM),
        topology(CONF),
        TierSource::Addresses(addresses),
    ] {
        let tiers = Tiers::of_ranks(&with_one, &source);
        assert_eq!(of_first(&tiers), ["leaf", UNKNOWN, UNKNOWN, UNKNOWN]);
        // Nor with another rank of that host; and a rank that did not come is not one that is not named.
        assert_eq!(tiers.name(tiers.of(2, 3)), UNKNOWN);
        assert_eq!(tiers.unknown(), [2, 3]);
        assert!(tiers.has_unknown() && tiers.is_unknown(tiers.of(0, 2)));
        assert!(!tiers.is_unknown(tiers.of(0, 1)) && tiers.group(2).is_empty());
        let some = tiers.of_nodes(&[0, 3]);
        assert!(some.is_unknown(some.of(1, 0)) && some.unknown() == [1]);
    }
    let nothing = Tiers::of_ranks(&with_one, &TierSource::Nothing);
    assert_eq!(of_first(&nothing), ["fabric"; 4]);
    let none = TierSource::Addresses(vec![None; 5]);
    let none = Tiers::of_ranks(&with_one, &none);
    assert_eq!(
        (of_first(&none), none.source()),
        (vec!["fabric"; 4], "nothing")
    );
}

#[test]
fn a_port_is_found_by_its_guid_then_by_its_device_then_by_its_host() {
    // The second adapter of n1 is at another leaf.
    let text = IBSIM.replace("\"S-0000000000200000\"[3]", "\"S-0000000000200003\"[3]");
    let source = topology(&text);
    let at = |rank: Endpoint| {
        let all = [Some(rank), Some(Endpoint::of_host("n8"))];
        let tiers = Tiers::of_ranks(&all, &source);
        (
            tiers.group(0).to_owned(),
            tiers.name(tiers.of(0, 1)).to_owned(),
        )
    };
    let is = |group: &str, tier: &str| (group.to_owned(), tier.to_owned());
    let rank = |host: &str, device: &str, guid| Endpoint {
        host: host.to_owned(),
        device: Some((device.to_owned(), 1)),
        guid,
    };
    assert_eq!(at(Endpoint::of_host("n1")), is("leaf4+leaf1", "leaf"));
    assert_eq!(at(rank("n1", "HCA-1", None)), is("leaf1", "up-2"));
    assert_eq!(
        at(rank("n1.example.org", "HCA-2", None)),
        is("leaf4", "leaf")
    );
    // The kernel's name of the device is another one than that of the description.
    assert_eq!(at(rank("n1", "mlx5_0", None)), is("leaf4+leaf1", "leaf"));
    assert_eq!(
        at(rank("n1", "mlx5_0", Some(0x10_0001))),
        is("leaf1", "up-2")
    );
    assert_eq!(
        at(rank("elsewhere", "mlx5_0", Some(0x10_0003))),
        is("leaf4", "leaf")
    );
    assert_eq!(at(rank("elsewhere", "mlx5_0", Some(1))), is("", UNKNOWN));
}

#[test]
fn the_engine_s_addresses_name_the_switches() {
    let all = ["s0.s4.n0", "s0.s4.n1", "s0.s5.n2", "s1.s6.n3", "s0.s4.n0"];
    let all = all.map(|it| Some(it.to_owned())).to_vec();
    let tiers = Tiers::of_ranks(&ranks("n0 n1 n2 n3 n0"), &TierSource::Addresses(all));
    assert_eq!(of_first(&tiers), ["leaf", "up-1", "apart", "same-host"]);
    assert_eq!((tiers.group(2), tiers.count()), ("s0.s5", 4));
    assert_eq!(tiers.of(3, 0), tiers.of(0, 3));
    assert_eq!(of_first(&tiers.of_nodes(&[3, 0])), ["apart"]);
}

#[test]
fn switches_side_by_side_are_an_odd_number_of_links_apart() {
    let text = "Switch 4 \"S-1\" # \"a\"\n[1] \"S-2\"[1]\nSwitch 4 \"S-2\" # \"b\"\n[2] \"S-3\"[1]\n\
                Ca 1 \"H-1\" # \"n1 mlx5_0\"\n[1](1) \"S-1\"[2]\nCa 1 \"H-2\" # \"n2 mlx5_0\"\n[1](2) \"S-2\"[3]\n\
                Ca 1 \"H-3\" # \"n3 mlx5_0\"\n[1](3) \"S-3\"[2]\nCa 1 \"H-4\" # \"n4 mlx5_0\"\n[1](4) \"S-4\"[2]\n";
    let tiers = Tiers::of_ranks(&ranks("n1 n2 n3 n4"), &topology(text));
    assert_eq!(of_first(&tiers), ["hops-1", "up-1", "apart"]);
    let names: Vec<&str> = tiers.pairs().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["hops-1", "up-1", "apart"]);
}

#[test]
fn tiers_of_results_are_the_nearest_first_again() {
    let names = [
        "apart",
        "up-10",
        UNKNOWN,
        "leaf",
        "hops-3",
        "up-2",
        "same-host",
    ]
    .map(str::to_owned);
    let of = [6, 0, 3, 2, 6, 1, 5, 4, 6];
    let tiers = Tiers::of_names(vec!["g".to_owned(); 3], &names, (HostPairs::all(3), &of), 0);
    assert_eq!(of_first(&tiers), ["apart", "leaf"]);
    let sorted: Vec<&str> = (0..7).map(|tier| tiers.name(tier)).collect();
    assert_eq!(
        sorted,
        [
            "same-host",
            "leaf",
            "hops-3",
            "up-2",
            "up-10",
            "apart",
            UNKNOWN
        ]
    );
    assert!(tiers.is_unknown(tiers.of(1, 0)));
    for name in sorted {
        assert_eq!(name_of(nearness(name)), name);
    }
}

#[test]
fn a_malformed_file_is_refused_with_its_line_and_what_is_allowed() {
    let cut = IBSIM.find("H-000000000010000c").unwrap();
    let cut_line = format!("line {}: ", IBSIM[..cut].lines().count());
    for (text, expected) in [
        ("Nodes=a\n", ["line 1: no SwitchName", "Nodes=LIST"]),
        (
            "SwitchName=a\n",
            ["line 1: neither Nodes nor Switches", "Nodes=LIST"],
        ),
        (
            "SwitchName=a Nodes=b \\\n x\n",
            ["line 1: \"x\" has no =", "Nodes=LIST"],
        ),
        (
            "#\nSwitchName=a Node=b\n",
            ["line 2: \"Node\" is not allowed", "Nodes=LIST"],
        ),
        (
            "BlockName=a Nodes=b\n",
            ["line 1: \"BlockName\" is not allowed", "SwitchName=NAME"],
        ),
        ("n1 leaf1\n", ["line 1: \"n1\" has no =", "SwitchName=NAME"]),
        (
            "SwitchName=a Nodes=b\nSwitchName=c Nodes=b\n",
            ["line 2: node b is at a already", "line 1"],
        ),
        (
            "SwitchName=a Nodes=b\nSwitchName=a Nodes=c\n",
            ["line 2: switch a", "line 1"],
        ),
        (
            "SwitchName=a Nodes=b\nSwitchName=c Switches=d\n",
            ["line 2: switch d", "SwitchName=d"],
        ),
        (
            "SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=d Switches=a\n\
             SwitchName=e Switches=c Nodes=f\nSwitchName=g Nodes=h Switches=e\nSwitchName=i Nodes=j Switches=g,i\n",
            ["line ", "above itself"],
        ),
        (
            "SwitchName=a Nodes=n[3-1]",
            ["line 1: \"n[3-1]\"", "n[01-16,20]"],
        ),
        (
            "SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
            ["names no node", ""],
        ),
        ("", ["names no node", ""]),
        ("vendid=0x2c9\n", ["names no node", ""]),
        (
            "Switch 4\n",
            ["line 1: \"Switch 4\" is malformed", "Ca PORTS"],
        ),
        (
            "vendid=0x2c9\n[1] \"S-1\"[2]\n",
            ["line 2: a port before", "Ca PORTS"],
        ),
        (
            "vendid=0x2c9\nno such line\n",
            ["line 2: \"no such line\"", "Ca PORTS"],
        ),
        (&IBSIM[..cut], [&cut_line, "Ca PORTS"]),
    ] {
        let error = TierFile::topology(text, Path::new(""))
            .unwrap_err()
            .to_string();
        for expected in expected {
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
    for (text, expected) in [
        (
            "a b c\n",
            "line 1: a node, or a list of them, and its group",
        ),
        ("a b\na c\n", "line 2: a is in another group already"),
        ("# a b\n", "names no node"),
    ] {
        let error = TierFile::groups(text, Path::new(""))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn names_are_compared_without_case_and_one_without_a_domain_is_any() {
    let file =
        TierFile::groups("N1.rack1 a\nn1.rack2 b\nn2.rack1 c\nn3 d\n", Path::new("")).unwrap();
    let group = |host: &str| {
        let tiers = Tiers::of_ranks(&ranks(host), &TierSource::File(file.clone()));
        tiers.group(0).to_owned()
    };
    for (host, expected) in [
        ("n1.rack2", "b"),
        ("n1.RACK1", "a"),
        ("n1", ""),
        ("n2", "c"),
        ("N2.rack1", "c"),
        ("n2.rack2", ""),
        ("N3.example.org", "d"),
    ] {
        assert_eq!(group(host), expected, "{host}");
    }
}

#[test]
fn lines_and_descriptions_of_other_kinds_name_no_host() {
    // As with -g, and with devices that are no adapters of hosts.
    let text = IBSIM.replacen(
        "\nvendid",
        "\nChassis 1 (guid 0x100)\nNon-Chassis Nodes\nvendid",
        1,
    );
    let text = text.replace("n7 mlx5_0", "Mellanox Technologies Aggregation Node");
    let text = text.replace("n8 mlx5_0", "localhost mlx5_0");
    let text = text.replace("\"leaf2\" base", "\"leaf1\" base");
    let file = TierFile::topology(&text, Path::new("")).unwrap();
    assert_eq!(file.hosts().join(" "), "n1 n2 n3 n4 n5 n6");
    let tiers = Tiers::of_ranks(&ranks("n1 n3"), &TierSource::File(file));
    assert_eq!(tiers.group(0), "leaf1 S-0000000000200000");
    assert_eq!(tiers.group(1), "leaf1 S-0000000000200001");
}

#[test]
fn leaves_of_unequal_depth_are_as_far_apart_as_there_are_links() {
    let text = "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName = c Switches = \"b\"\n\
                SwitchName=d Switches=a,c\n";
    let tiers = Tiers::of_ranks(&ranks("n1 n2"), &topology(text));
    assert_eq!(of_first(&tiers), ["hops-3"]);
}

#[test]
fn hosts_are_in_the_order_of_their_numbers() {
    let file = TierFile::groups("n[8-11] a\nr2n1 a\nr10n1 a\nlogin b\n", Path::new("")).unwrap();
    assert_eq!(file.hosts().join(" "), "login n8 n9 n10 n11 r2n1 r10n1");
}
