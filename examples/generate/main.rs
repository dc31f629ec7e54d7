//! Writes what the package holds beside the binary and can be told from its sources: the manual
//! pages, and the completions for bash, zsh and fish.
//!
//! ```sh
//! cargo run --example generate -- target/package
//! ```

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::CommandFactory;
use clap_complete::Shell;
use lanelect::cli::Cli;

mod man;

fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::other("usage: generate DIRECTORY"));
    };
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("lanelect.1"), man::lanelect(&Cli::command()))?;
    fs::write(directory.join("lanelect-http.1"), man::lanelect_http())?;
    fs::write(directory.join("lanelect.toml.5"), man::lanelect_toml())?;
    write_completions(&directory)
}

fn write_completions(directory: &Path) -> io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "lanelect", directory)?;
    }
    Ok(())
}
