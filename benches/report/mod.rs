//! What the benchmarks print and draw: samples, tables and plots.

pub(crate) mod strips;
pub(crate) mod svg;

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};

/// One program's samples of one measurement.
#[derive(Debug, Clone)]
pub(crate) struct Samples {
    /// Whose they are.
    pub(crate) name: String,
    /// In ascending order; at least one.
    values: Vec<f64>,
}

impl Samples {
    /// Panics where there are none.
    pub(crate) fn new(name: impl Into<String>, mut values: Vec<f64>) -> Samples {
        assert!(!values.is_empty(), "no samples");
        values.sort_unstable_by(f64::total_cmp);
        Samples { name: name.into(), values }
    }

    /// In ascending order.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The middle one, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> f64 {
        let (low, high) = ((self.values.len() - 1) / 2, self.values.len() / 2);
        f64::midpoint(self.values[low], self.values[high])
    }

    /// The least.
    pub(crate) fn min(&self) -> f64 {
        self.values[0]
    }

    /// The greatest.
    pub(crate) fn max(&self) -> f64 {
        self.values[self.values.len() - 1]
    }
}

/// A table for a terminal: words to the left, numbers to the right.
#[derive(Debug)]
pub(crate) struct Table {
    /// How many columns are words; the others follow them.
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows under these headings, the first `words` of which are for words.
    pub(crate) fn new<T: Display>(words: usize, headings: impl IntoIterator<Item = T>) -> Table {
        Table { words, rows: vec![cells(headings)] }
    }

    /// Adds a row of as many cells as there are headings.
    pub(crate) fn row<T: Display>(&mut self, row: impl IntoIterator<Item = T>) {
        let row = cells(row);
        assert_eq!(row.len(), self.rows[0].len(), "a row of another width");
        self.rows.push(row);
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = 0..self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = columns.filter_map(width).collect();
        for row in &self.rows {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column < self.words {
                    write!(f, "  {cell:<width$}")?;
                } else {
                    write!(f, "  {cell:>width$}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn cells<T: Display>(row: impl IntoIterator<Item = T>) -> Vec<String> {
    row.into_iter().map(|cell| cell.to_string()).collect()
}

/// How often `base` goes into `value`, for people; a dash where there is no base.
pub(crate) fn ratio(value: f64, base: Option<f64>) -> String {
    base.filter(|base| *base > 0.0).map_or("-".into(), |base| format!("{:.2}", value / base))
}

/// Writes a plot into `target/bench` and says where it is.
pub(crate) fn save(name: &str, svg: &str) {
    let path = directory().join(format!("{name}.svg"));
    fs::write(&path, svg).expect("a plot can be written");
    println!("  plot: {}\n", path.display());
}

/// Keeps the samples of a measurement, for plots that show several measurements.
pub(crate) fn keep(name: &str, sets: &[Samples]) {
    let line = |set: &Samples| {
        let values: Vec<_> = set.values().iter().map(|value| format!("{value:.3}")).collect();
        format!("{}\t{}\n", set.name, values.join("\t"))
    };
    let text: String = sets.iter().map(line).collect();
    fs::write(kept(name), text).expect("samples can be written");
}

/// What [`keep`] kept in this run or an earlier one; none if that measurement has not run yet.
pub(crate) fn recall(name: &str) -> Option<Vec<Samples>> {
    let text = fs::read_to_string(kept(name)).ok()?;
    let set = |line: &str| {
        let (name, values) = line.split_once('\t')?;
        let values: Result<_, _> = values.split('\t').map(str::parse).collect();
        Some(Samples::new(name, values.ok()?))
    };
    text.lines().map(set).collect()
}

fn kept(name: &str) -> PathBuf {
    directory().join(format!("{name}.tsv"))
}

fn directory() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("bench");
    fs::create_dir_all(&directory).expect("a directory for plots");
    directory
}
