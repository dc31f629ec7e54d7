//! The flags of the command line that stand for config keys.

use clap::builder::{BoolValueParser, RangedI64ValueParser, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};
use toml::Value;

use crate::config::{Kind, Overrides, SETTINGS, Setting};

/// One flag for each of [`SETTINGS`], which is the only list of keys.
#[derive(Debug)]
pub(super) struct ConfigFlags(pub(super) Overrides);

impl Args for ConfigFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(SETTINGS.iter().map(flag))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ConfigFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = ConfigFlags(Overrides::default());
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in SETTINGS {
            let Some(values) = matches.get_many::<Value>(setting.name) else { continue };
            match setting.kind {
                Kind::Names => self.0.set(setting, values.cloned().collect::<Vec<_>>()),
                _ => values.cloned().for_each(|value| self.0.set(setting, value)),
            }
        }
        Ok(())
    }
}

/// The flags of [`ConfigFlags`] for a command whose help does not list them.
#[derive(Debug)]
pub(super) struct HiddenFlags(pub(super) ConfigFlags);

impl Args for HiddenFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(SETTINGS.iter().map(|setting| flag(setting).hide(true)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for HiddenFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        ConfigFlags::from_arg_matches(matches).map(HiddenFlags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

fn flag(setting: &'static Setting) -> Arg {
    let flag = Arg::new(setting.name).long(setting.flag).help(setting.help);
    let flag = flag.help_heading("Config keys");
    let text = || StringValueParser::new().map(Value::from);
    match setting.kind {
        Kind::Text => flag.value_name("TEXT").value_parser(text()),
        Kind::Path => flag.value_name("PATH").value_parser(text()),
        Kind::Duration => flag.value_name("DURATION").value_parser(text()),
        Kind::Names => flag
            .value_name("NAME")
            .value_parser(text())
            .value_delimiter(',')
            .action(ArgAction::Append),
        Kind::Boolean => {
            flag.value_name("BOOLEAN").value_parser(BoolValueParser::new().map(Value::from))
        }
        Kind::Integer => flag
            .value_name("NUMBER")
            .value_parser(RangedI64ValueParser::<i64>::new().map(Value::from))
            .allow_negative_numbers(true),
    }
}
