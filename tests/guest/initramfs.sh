#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
# The guest's first process: finds the root drive and hands over to the program on it that /init.path
# names.
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
while read -r module; do
	/bin/busybox insmod "/modules/$module" || echo "initramfs: $module can't be loaded" >/dev/kmsg
done </modules/order
/bin/busybox mount -t ext4 -o ro /dev/vda /root
for dir in proc sys dev; do
	/bin/busybox mount --move /$dir /root/$dir
done
exec /bin/busybox switch_root /root "$(/bin/busybox cat /init.path)"
