# The .deb of another architecture in a fresh Debian of that. Sourced by ci/test-package, never run.
#
# What debootstrap can do without running a program of it is done here. The rest is done in the emulated machine, so
# that this one need not be told how to run such programs.
# shellcheck shell=bash
# shellcheck disable=SC2154 # of ci/test-package

if [[ ! -e $debian/complete || $(<"$debian/complete") != "$stamp" ]]; then
    need_root "making a fresh Debian"
    say "fetching a Debian 12 for $debian_arch"
    rm -rf -- "$debian"
    mkdir -p -- "$debian"
    "${as_root[@]}" "${unshare[@]}" debootstrap --foreign --arch "$debian_arch" --variant=minbase \
        --include "${recommended// /}" "$release" "$work/root" "$mirror" >"$debian/log" 2>&1 </dev/null || {
        tail -n 30 -- "$debian/log" >&2
        fail "debootstrap could not fetch a Debian 12 for $debian_arch (whole output: $debian/log)"
    }
    "${as_root[@]}" tar -C "$work/root" --one-file-system -cf - . >"$debian/root.tar"
    "${as_root[@]}" rm -rf --one-file-system -- "$work/root"
    printf '%s\n' "$stamp" >"$debian/complete"
fi
cp -- "${deb[0]}" "$debian/hcabench.deb"

say "installing it and trying it in the machine of ci/vm --arch $arch, which takes some minutes"
# shellcheck disable=SC2016 # expanded there
ci/vm --arch "$arch" --memory 4G --timeout 3000 -- bash -c '
    set -e
    root=/run/fresh
    mkdir "$root"
    mount -t tmpfs -o size=3G,mode=755 tmpfs "$root"
    tar -C "$root" -xf "$1/root.tar"
    in_root() {
        chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive "$@"
    }
    in_root /debootstrap/debootstrap --second-stage >/run/second-stage 2>&1 || { tail -n 20 /run/second-stage; exit 1; }
    mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
    mountpoint -q "$root/sys" || mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    cp "$1/hcabench.deb" "$root/tmp/"
    in_root dpkg -i /tmp/hcabench.deb
    in_root dpkg --print-architecture
    in_root bash -s -- --throw-away <ci/package-trial' - "$debian" 2>&1 | tee -- "$files/trial" ||
    fail "the .deb did not pass"
[[ $(tail -n 1 -- "$files/trial") == "the trial has passed" ]] || fail "the trial did not run to its end"
