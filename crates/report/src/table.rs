// SPDX-License-Identifier: GPL-2.0-only
//! Sections laid out as text tables.

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, ContentLineStyle, LineStyle, Table,
    TableStyle, Width,
};

use crate::columns::Columns;
use crate::format;
use crate::sections::{Better, Row, Section};
use crate::stats::{Change, Estimate};

/// Better, worse, and "not told apart by these seeds".
pub(crate) const BETTER: char = '✓';
/// Worse.
pub(crate) const WORSE: char = '✗';
/// Not told apart by these seeds.
pub(crate) const UNCLEAR: char = '≈';
/// Stands before a percentile of few samples.
pub(crate) const FEW: char = '†';

const NOTHING: &str = "–";

/// Texts of a table; its first `n_labels` columns are left-aligned.
pub(crate) struct Grid {
    header: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    n_labels: usize,
}

/// All sections as texts, of the same widths where they have the same columns.
///
/// Columns that do not fit into `width` go to further tables, with the first policy repeated.
pub(crate) fn tables(columns: &Columns<'_>, sections: &[Section], width: usize) -> Vec<String> {
    let n_columns = columns.columns.len();
    if n_columns == 1 {
        let pivoted: Vec<Grid> = sections.iter().map(|s| pivot(s, columns)).collect();
        let widths = common_widths(&pivoted);
        if total(&widths) <= width {
            return pivoted.iter().map(|grid| grid.render(&widths)).collect();
        }
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let others: Vec<usize> = (1..n_columns).collect();
    let fits = |some: &[usize]| {
        let grids = sections.iter().map(|section| compare(section, columns, some));
        total(&common_widths(&grids.collect::<Vec<_>>())) <= width
    };
    for other in others {
        match parts.last_mut() {
            Some(part) if fits(&[part.as_slice(), &[other]].concat()) => part.push(other),
            _ => parts.push(vec![0, other]),
        }
    }
    if parts.is_empty() {
        parts.push(vec![0]);
    }
    let mut texts = Vec::new();
    for part in parts {
        let grids: Vec<Grid> =
            sections.iter().map(|section| compare(section, columns, &part)).collect();
        let widths = common_widths(&grids);
        texts.extend(grids.iter().map(|grid| grid.render(&widths)));
    }
    texts
}

/// Columns `shown` side by side, each but the first with its change.
fn compare(section: &Section, columns: &Columns<'_>, shown: &[usize]) -> Grid {
    let mut header = vec![heading(section), String::new()];
    for column in shown {
        header.push(columns.columns[*column].heading.clone());
        if *column != shown[0] {
            header.push(padded("change", None));
        }
    }
    let mut rows = Vec::new();
    let mut last = "";
    for row in &section.rows {
        let subject = if row.subject == last { String::new() } else { row.subject.clone() };
        last = &row.subject;
        let mut cells = vec![subject, row.figure.to_string()];
        for column in shown {
            cells.push(value(section, row, *column));
            if *column != shown[0] {
                cells.push(change(row, shown[0], *column));
            }
        }
        rows.push(cells);
    }
    Grid { header: Some(header), rows, n_labels: 2 }
}

/// Figures of a distribution of delays, in the order of their columns.
const DELAYS: [&str; 6] = ["p50", "p95", "p99", "p99.9", "max", "longest"];

/// The only column, with the figures side by side.
fn pivot(section: &Section, columns: &Columns<'_>) -> Grid {
    let mut figures: Vec<&str> = Vec::new();
    for row in &section.rows {
        if !figures.contains(&row.figure) {
            figures.push(row.figure);
        }
    }
    // The first subject need not have all figures, so the order of appearance is none.
    figures.sort_by_key(|figure| DELAYS.iter().position(|delay| delay == figure).unwrap_or(99));
    let name = |figure: &&str| match *figure {
        "" => columns.columns[0].heading.clone(),
        figure => figure.to_string(),
    };
    let header = [heading(section)].into_iter().chain(figures.iter().map(name)).collect();
    let mut rows = Vec::new();
    let mut last: Option<&str> = None;
    for row in &section.rows {
        if last != Some(&row.subject) {
            last = Some(&row.subject);
            let cell = |figure: &&str| {
                let mut all = section.rows.iter();
                let found = all.find(|r| r.subject == row.subject && r.figure == *figure);
                found.map_or_else(|| NOTHING.to_string(), |found| value(section, found, 0))
            };
            let cells = figures.iter().map(cell);
            rows.push([row.subject.clone()].into_iter().chain(cells).collect());
        }
    }
    Grid { header: Some(header), rows, n_labels: 1 }
}

fn heading(section: &Section) -> String {
    match section.unit {
        format::Unit::Count => section.title.clone(),
        unit => format!("{} [{}]", section.title, unit.name()),
    }
}

fn value(section: &Section, row: &Row, column: usize) -> String {
    let known: Vec<f64> = row.values[column].iter().flatten().copied().collect();
    let Some(estimate) = Estimate::of(&known) else { return NOTHING.to_string() };
    let few = row.few.get(column).copied().unwrap_or(false);
    let text = section.unit.show(estimate);
    if few { format!("{FEW}\u{a0}{text}") } else { text }
}

fn change(row: &Row, first: usize, column: usize) -> String {
    let Some(change) = Change::between(&row.values[first], &row.values[column]) else {
        return padded(NOTHING, None);
    };
    let judgement = match row.better {
        Better::Neither => None,
        Better::Lower if change.significant && change.ratio < 1.0 => Some(BETTER),
        Better::Lower if change.significant => Some(WORSE),
        Better::Lower if change.half_width.is_some() && change.ratio != 1.0 => Some(UNCLEAR),
        Better::Lower => None,
    };
    padded(&format::change(change), judgement)
}

/// Leaves room for the judgement, so that numbers stand under each other.
fn padded(text: &str, judgement: Option<char>) -> String {
    format!("{text}\u{a0}{}", judgement.unwrap_or('\u{a0}'))
}

const GAP: usize = 2;

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

fn common_widths(grids: &[Grid]) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for own in grids.iter().map(Grid::widths) {
        widths.resize(widths.len().max(own.len()), 0);
        widths.iter_mut().zip(own).for_each(|(width, own)| *width = (*width).max(own));
    }
    widths
}

/// Only a rule below the header.
const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .content_lines(ContentLineStyle::none().junction(' '));

impl Grid {
    /// Rows without a header.
    pub(crate) fn plain(rows: Vec<Vec<String>>, n_labels: usize) -> Self {
        Self { header: None, rows, n_labels }
    }

    /// Rows under a header.
    pub(crate) fn titled(header: Vec<String>, rows: Vec<Vec<String>>, n_labels: usize) -> Self {
        Self { header: Some(header), rows, n_labels }
    }

    /// The text in the width it needs.
    pub(crate) fn render_plain(&self) -> String {
        self.render(&self.widths())
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
        let cells = |row: &Vec<String>| -> Vec<Cell> {
            let cell = |(column, text): (usize, &String)| {
                let left = column < self.n_labels;
                let alignment = if left { CellAlignment::Left } else { CellAlignment::Right };
                Cell::new(text).set_alignment(alignment)
            };
            row.iter().enumerate().map(cell).collect()
        };
        if let Some(header) = &self.header {
            table.set_header(cells(header));
        }
        for row in &self.rows {
            table.add_row(cells(row));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { 0 } else { GAP as u16 - 1 }, 0));
        }
        table
    }

    fn widths(&self) -> Vec<usize> {
        self.table().column_max_content_widths().into_iter().map(usize::from).collect()
    }

    /// The text with label `elastic` cut where it would be wider than `width`; none when that does
    /// not suffice.
    pub(crate) fn render_within(mut self, width: usize, elastic: usize) -> Option<String> {
        const LEAST: usize = 16;
        let widths = self.widths();
        let over = total(&widths).saturating_sub(width);
        let room = widths.get(elastic).map_or(0, |own| own.saturating_sub(over).max(LEAST));
        for row in &mut self.rows {
            if let Some(cell) = row.get_mut(elastic) {
                *cell = format::elide(cell, room);
            }
        }
        let widths = self.widths();
        (total(&widths) <= width).then(|| self.render(&widths))
    }

    fn render(&self, widths: &[usize]) -> String {
        let mut table = self.table();
        for (column, width) in table.column_iter_mut().zip(widths) {
            let width = u16::try_from(*width).unwrap_or(u16::MAX) + column.padding_width();
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
        table.trim_fmt()
    }
}
