//! The examples below the help of each command; `tests/anywhere/documentation.rs` gives each of them to the program.

pub(crate) const HCA: &str = "\
Examples:
  hcabench --service rc --inline --burst 8192
      One burst of 8192 messages over RC, with the data in the work request
  hcabench --service rc,uc,ud --size 8..4k --pause 50us --rounds 8
      The median one-way latency of each service and size, with its bounds over eight rounds
  hcabench --service rc --poll busy,event --burst 500 --pause 200us --rounds 8 --out sweep
      The runs to compare busy polling with events: hcabench compare sweep --by poll_recv";

pub(crate) const BASELINE: &str = "\
Examples:
  hcabench baseline runs/monday runs/tuesday runs/wednesday --out baseline.json
      Three runs of three days, as what is usual: five to ten show more
  hcabench fabric --ranks 64 --baseline baseline.json --dry-run
      The settings that a run needs to be judged against it";

pub(crate) const HEALTH: &str = "\
Examples:
  hcabench health runs --baseline baseline.json
      Which nodes were out in the last runs below the folder runs, since when, and with which firmware and kernel
  hcabench health runs --baseline baseline.json --drain-command slurm
      The commands that drain the nodes that are failing; nothing is run
  hcabench health runs --prometheus /var/lib/node_exporter/hcabench.prom --json
      The same for monitoring and for programs
  hcabench health --print-rules
      The rules, as a file to change and to give to --rules

Exit codes: 0 no rule is broken; 1 files of results are damaged or cannot be read; 2 bad input;
3 a node, pair or tier breaks a rule.";

pub(crate) const HISTORY: &str = "\
Examples:
  hcabench history results
      Each figure of the runs below the folder results, in the order of time, with its changes
  hcabench history results --out history.html
      The same as a page with a plot of each figure
  hcabench history results --figures p50,throughput --since 2026-11-01 --fail-on-change
      A gate: exit code 3 if a median or a throughput changed since the first of November

Label runs to see the label that a change came with: HCABENCH_LABEL=$(git rev-parse HEAD) hcabench queue

Exit codes: 0 judged; 1 files of results are damaged or cannot be read; 2 bad input;
3 a figure changed, with --fail-on-change.";

pub(crate) const CLOCK: &str = "\
Examples:
  hcabench clock --duration 10s
      How often, how long and why this machine stops a thread
  hcabench clock --all-cpus --duration 60s --fail-above 50us,2us@p99.99
      A gate: exit code 3 if a jump is longer than 50 us, or the 99.99th percentile than 2 us
  hcabench clock --trust
      Whether time stamps of the TSC can be trusted on this machine";

pub(crate) const COMPARE: &str = "\
Examples:
  hcabench compare before after --max-regression 5%@latency.p50
      A gate: exit code 3 if the median of any point has become worse, and by more than 5 %
  hcabench compare sweep --by poll_recv
      The points of one sweep that differ in how the receiver waits
  hcabench compare --run '--poll busy' --run '--poll event' --rounds 10 --out both
      Two command lines, measured in turn, so that a drift of the machine is in both

Verdicts are by rounds: record both with --rounds 8 or more, in turn (--run does).

Exit codes: 0 compared; 1 results cannot be read, a run failed, or a limit could not be judged
at all points of BASE; 2 bad input, or machine or settings differ; 3 a limit is broken.";

pub(crate) const CORES: &str = "\
Examples:
  hcabench cores --out cores
      All pairs of CPUs; as a picture: hcabench plot matrix cores --out cores.svg
  hcabench cores --cpus 0-7 --duration 10ms --rounds 12
      Eight of them, each pair for longer and in more rounds
  hcabench cores --memory-node reader --dry-run
      What would be measured with lines on the node of the CPU that reads them, and how long it takes";

pub(crate) const PLOT: &str = "\
Examples:
  hcabench plot histogram results/sweep --only size_bytes=8 --out histogram.svg
      The distributions of several points over each other
  hcabench plot median results/sweep --x size_bytes --out median.svg
      The median by message size, a line for each other setting that varies
  hcabench plot load results/load --out load.svg
      Latency under load, of a run with --background 0,200@4KiB,4k@4KiB
  hcabench plot time results/clock --out jumps.svg
      The jumps of a clock over time, by cause";

pub(crate) const QUEUE: &str = "\
Examples:
  hcabench queue --list
      The queues that there are, and where they come from
  hcabench queue --queue all --payload 64 --load constant-rate --rate 500k
      Which queue is best for 500 000 elements of 64 B a second
  hcabench queue --queue baton,b-queue,b-queue:penalty=0 --measure round-trip
      There and back, also without the wait of B-Queue's authors after a failed attempt
  hcabench queue --queue baton,rtrb --load-curve --out curve
      Latency by offered rate, from 1 % of saturation up: hcabench plot median curve --out curve.svg
  hcabench queue --queue all --producers 2 --consumers 2 --scenario fan-in,round-robin
      The throughput of queues that several threads share, and the share of each thread";

pub(crate) const MEMORY: &str = "\
Examples:
  hcabench memory --out curves
      Latency against bandwidth for five shares of reads: hcabench plot curves curves --out curves.svg
  hcabench memory --read-share 50,100 --store regular,non-temporal --pause 0,512,max,off --rounds 8
      Some points of it, with stores past the caches beside regular ones, and without any load
  hcabench memory --pages 4k --size 512M --pause off --smooth none
      The latency of one load that misses the TLB as well";

pub(crate) const NODE: &str = "\
Examples:
  hcabench node --type all --duration 1s --warmup 200ms
      How many times as long as the fastest each node-type takes, with bounds
  hcabench node --type udp --rate 100..10k --values 1..64
      Latency, missed steps and losses over rates and sizes of samples
  hcabench node --scenario fan-out --publishers 1 --subscribers 4 --rate 1k
      One publisher whose samples go to four subscribers
  hcabench node --rate 10k --duration 2s --samples --out steps
      The same with each sample: in.csv has the sent ones, out.csv those that arrived, lost.csv the others";

pub(crate) const REPORT: &str = "\
Examples:
  hcabench report results/sweep --out sweep.html
      A page that needs nothing else, for a browser or a mail
  hcabench report results/sweep --out sweep.html --title 'Rack 7, after the new firmware'
      The same with a title
  hcabench report results/sweep/POINT --out point.html
      One point of it: POINT is its folder";

pub(crate) const RERUN: &str = "\
Examples:
  hcabench rerun results/sweep --out again
      The same command line, into another folder
  hcabench rerun results/sweep --out again --rounds 8
      The same with an option that overrides the recorded one
  hcabench rerun results/sweep --dry-run
      The points that it would measure";

pub(crate) const HOST: &str = "\
Examples:
  hcabench host
      Whether this machine is ready for the HCA benchmark, and what to change
  hcabench host --for queue
      The same for measurements between two threads, which take no RDMA device
  hcabench host --json
      The same for programs, with all recorded facts about the machine";

pub(crate) const FABRIC: &str = "\
Examples:
  srun -N8 --ntasks-per-node=1 hcabench fabric --inline --burst 200 --rounds 3 --out fabric
      All pairs of eight nodes, three times; rank 0 writes the results
  hcabench fabric --ranks 512 --dry-run
      How many pairs and how long, without a device
  hcabench fabric --rank 0 --ranks 2 --rendezvous node1 --out pair
      Without a launcher: the same on the other host, with --rank 1";

pub(crate) const SERVE: &str = "\
Examples:
  hcabench serve
      On one host: wait for senders, at any of its addresses
  hcabench --peer node2 --service rc --inline --burst 8192
      On the other: send to it, and prove bounds of the one-way latency
  hcabench node --peer node2 --type udp,tcp --rate 1k
      The same for samples through node-types, whose subscribers are there; takes no RDMA device
  hcabench serve --bind 10.0.0.2 --receiver mlx5_0 --once
      At one address, for one run, over a named port";

pub(crate) const DEVICES: &str = "\
Examples:
  hcabench devices
      The devices, and the two ports that a run would take
  hcabench devices --json
      The same for programs
  hcabench devices --report adapter
      A folder to send with an issue, without the names and addresses of the host";

pub(crate) const SHOW: &str = "\
Examples:
  hcabench show notebooks/sample/hca
      The table of a run, its verdict, and a line for each reservation
  hcabench show notebooks/sample/queue --all
      The same with cause and fix of each finding, and all facts about the machine";

pub(crate) const LIST: &str = "\
Examples:
  hcabench list
      The runs below the folder results
  hcabench list notebooks/sample --json
      Those of another folder, for programs";
