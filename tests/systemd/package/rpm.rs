//! The package for systems with RPM, installed, upgraded and removed by dnf. The hosts have the
//! files of this machine, which may be a Debian: its packages are unknown to RPM.

use std::process::Command;

use super::{FILES, Kind, live_with_package, missing};
use crate::harness::inside;
use crate::hosts::{Host, bare_scenario};

/// Names the package that `packaging/build rpm` has made.
const PACKAGE: &str = "LANELECT_RPM";

/// Names another, whose version or release is later.
const NEXT: &str = "LANELECT_RPM_NEXT";

/// What installs and removes it, from files alone.
const RPM: Kind = Kind {
    ending: "rpm",
    install: "HOME=/root dnf --assumeyes --quiet --disablerepo='*' install",
    remove: "HOME=/root dnf --assumeyes --quiet --disablerepo='*' remove lanelect",
};

/// Makes a package without files that provides what this machine has: its libraries, as RPM itself
/// finds them, its shell and its systemd. Whatever else a package requires fails its installation.
const PROVIDER: &str = r#"set -eu
    mkdir -p /etc/rpm
    echo '%_dbpath /var/lib/rpm' >/etc/rpm/macros.test
    cd "$(mktemp -d)"
    libraries=$(ldconfig -p | sed -n 's/.* => //p' | grep -E '/(libc|libgcc_s|libm|ld-linux[^/]*)\.so\.[0-9]$')
    {
        printf '%s\n' 'Name: base' 'Version: 1' 'Release: 1' 'License: none' 'BuildArch: noarch'
        echo 'Summary: What this machine has without RPM'
        systemctl --version | sed -n 's/^systemd \([0-9]*\).*/Provides: systemd = \1/p'
        printf 'Provides: %s\n' /bin/sh 'rtld(GNU_HASH)'
        printf '%s\n' "$libraries" | /usr/lib/rpm/elfdeps --provides | sed 's/^/Provides: /'
        printf '%s\n' '%description' 'Nothing.' '%files'
    } >base.spec
    rpmbuild -bb --quiet --define "_topdir $PWD" --define "_rpmdir $PWD" \
        --define '_build_name_fmt base.rpm' base.spec
    mv base.rpm /run/site/shared/"#;

/// What the administrator wrote, and what the daemon keeps: RPM does not know them.
const KEPT: &str = "/etc/lanelect /var/lib/lanelect";

#[test]
fn the_rpm_is_installed_upgraded_and_removed_without_a_trace_but_config_and_state() {
    let reason = missing(&[PACKAGE, NEXT]).or_else(|| missing_tools().map(str::to_owned));
    if let Some(reason) = reason {
        return inside::skip(inside::test_name(&|| ()), &reason);
    }
    bare_scenario(|site, [h1, h2]| {
        RPM.share(PACKAGE, "first");
        RPM.share(NEXT, "next");
        for host in [h1, h2] {
            host.run(PROVIDER);
            RPM.install(host, "base");
        }
        let before = h1.run(FILES);
        live_with_package(site, [h1, h2], &RPM);
        check_requirements(h1);
        assert_eq!(h1.run("rpm --query --all 'lanelect*'"), "");
        assert_eq!(h1.run("systemctl list-unit-files --no-legend 'lanelect*' || true"), "");
        h1.run(&format!("rm -r {KEPT}"));
        assert_eq!(h1.run(FILES), before);
    });
}

/// What dnf found with the provider, the package really asked for.
fn check_requirements(host: &Host) {
    let required = host.run("rpm --query --package --requires /run/site/shared/first.rpm");
    for what in ["systemd", "/bin/sh", "libc.so.6()(64bit)"] {
        assert!(required.lines().any(|line| line == what), "{what} is not among {required}");
    }
}

fn missing_tools() -> Option<&'static str> {
    let found = |tool| Command::new(tool).arg("--version").output().is_ok();
    (!["dnf", "rpm", "rpmbuild"].into_iter().all(found))
        .then_some("there is no dnf or rpm; install dnf and rpm")
}
