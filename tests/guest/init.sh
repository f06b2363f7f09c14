#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The guest's second half of booting: file systems, modules, then the script of the run.  Its output is
# the second serial port; its status goes to /results/.status before the machine is switched off.
export PATH=/usr/sbin:/usr/bin HOME=/root TERM=dumb LC_ALL=C
exec </dev/null >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 -opost
. /etc/guest.conf
. /zswapd/tests/guest/modules.sh

mount -t tmpfs -o size=50% run /run
mkdir -p /run/lock
mount -t tmpfs -o size=50% tmp /tmp
mount -t tmpfs -o size=50% tmp /var
mkdir -p /var/tmp
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
ln -sf /proc/self/fd /dev/fd
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
mount -t debugfs none /sys/kernel/debug 2>/dev/null
mount -t tracefs none /sys/kernel/tracing 2>/dev/null

for module in "${GUEST_LOAD[@]}"; do
	case $module in
	nvme) load nvme poll_queues="$GUEST_POLL_QUEUES" ;;
	*) load "$module" ;;
	esac || echo "init: module $module is not there"
done
# The kernel numbers the drives in the order in which they answer.
for ((i = 0; i < GUEST_DRIVES; i++)); do
	drive=
	for ((tries = 0; tries < 100; tries++)); do
		drive=$(grep -lx "drive$i *" /sys/class/nvme/nvme*/serial 2>/dev/null | sed 's/.*\(nvme[0-9]*\).*/\1/')
		[ -n "$drive" ] && [ -b "/dev/${drive}n1" ] && break
		sleep 0.05
	done
	ln -s "${drive}n1" "/dev/drive$i"
done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072,cache=none share /share ||
	echo "init: no results can be handed over"

# Whoever waits longer than this has been forgotten, however slow the emulation is.
echo 30 >/proc/sys/kernel/hung_task_timeout_secs
echo 2 >/proc/sys/kernel/hung_task_check_interval_secs 2>/dev/null
echo 1 >/proc/sys/kernel/print-fatal-signals

# Before the limit strikes, the console gets who waits for what.
guard $((GUEST_LIMIT > 80 ? GUEST_LIMIT - 40 : GUEST_LIMIT / 2)) &

cd /root || exit
export ZSWAPD=/usr/bin/zswapd ZSWAPCTL=/usr/bin/zswapctl PAGELOAD=/usr/bin/pageload SLOTS=/usr/bin/slots
status=0
"${GUEST_COMMAND[@]}" || status=$?
echo $status >/results/.status
poweroff -f
