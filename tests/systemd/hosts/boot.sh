#!/bin/sh
# Boots a host: COMMAND becomes PID 1 of namespaces of its own, on a writable overlay of this machine's
# root.
#
#     boot.sh NAME SITE COMMAND [ARGUMENT...]
#
# NAME is the hostname, a network namespace known to `ip netns`, a directory in SITE and a control
# group in SITE/cgroup. SITE/NAME has:
#     upper, work   what the host has written
#     units         its /etc/systemd/system; nothing of this machine's is enabled there
#     root          where its root is mounted
# and gets the file `pid`, where PID 1 is found in /proc. SITE/image holds files that every host has
# instead of this machine's. SITE/shared is the same directory for all hosts.
set -eu

# Whoever is in its control group before it gets a namespace for them sees it as the root.
if [ $$ -ne 1 ]; then
    echo $$ >"$2/cgroup/$1/cgroup.procs"
    exec nsenter --net="/run/netns/$1" -- \
        unshare --pid --fork --kill-child --mount --propagation private --uts --ipc --cgroup -- \
        sh "$0" "$@"
fi

name=$1 site=$2
shift 2
host=$site/$name root=$site/$name/root

read -r pid _ </proc/self/stat
echo "$pid" >"$host/pid"
hostname "$name"

mount -t overlay -o "lowerdir=$site/image:/,upperdir=$host/upper,workdir=$host/work" overlay "$root"
mount --bind "$host/units" "$root/etc/systemd/system"

mount -t proc proc "$root/proc"
# These belong to the whole machine; a system manager would set them up for itself.
for file in sys sysrq-trigger; do
    [ -e "$root/proc/$file" ] || continue
    mount --bind "$root/proc/$file" "$root/proc/$file"
    mount -o remount,bind,ro "$root/proc/$file"
done
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"

mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root$site/shared"
mount --bind "$site/shared" "$root$site/shared"

cd "$root"
mkdir -p .machine
pivot_root . .machine
umount -l /.machine
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --bounding-set=-sys_module,-sys_rawio,-sys_time "$@"
