//! The package for Debian, installed, upgraded and purged by dpkg.

use super::{FILES, Kind, live_with_package, missing};
use crate::harness::inside;
use crate::hosts::bare_scenario;

/// Names the package that `packaging/build deb` has made.
pub(super) const PACKAGE: &str = "LANELECT_DEB";

/// What installs and purges it.
pub(super) const DEB: Kind = Kind {
    ending: "deb",
    install: "dpkg --force-unsafe-io --install",
    remove: "dpkg --force-unsafe-io --purge lanelect",
};

/// Makes the same package once more, as a later version.
const REPACK: &str = "cd /tmp && dpkg-deb --raw-extract /run/site/shared/first.deb next &&
    sed -i 's/^Version: .*/Version: 999-1/' next/DEBIAN/control &&
    dpkg-deb --build --root-owner-group next /run/site/shared/next.deb";

#[test]
fn the_package_is_installed_upgraded_and_purged_without_a_trace() {
    if let Some(reason) = missing(&[PACKAGE]) {
        return inside::skip(inside::test_name(&|| ()), &reason);
    }
    bare_scenario(|site, [h1, h2]| {
        DEB.share(PACKAGE, "first");
        h1.run(REPACK);
        let before = h1.run(FILES);
        live_with_package(site, [h1, h2], &DEB);
        assert_eq!(h1.run(FILES), before);
    });
}
