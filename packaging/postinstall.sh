#!/bin/sh
# On Ubuntu only a program with a profile may make user namespaces. Installs the profile
# if AppArmor has rules for them (4.0), and loads it if AppArmor is on.
set -e

profile=/etc/apparmor.d/holdfast
if [ -e /etc/apparmor.d/abi/4.0 ]; then
	install -m 0644 /usr/share/holdfast/apparmor "$profile"
	if grep -q '^Y' /sys/module/apparmor/parameters/enabled 2>/dev/null && command -v apparmor_parser >/dev/null; then
		apparmor_parser --replace --write-cache "$profile" ||
			echo "holdfast: the AppArmor profile was not loaded; 'holdfast doctor' says whether it is needed" >&2
	fi
fi
