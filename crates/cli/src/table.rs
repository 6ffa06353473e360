// SPDX-License-Identifier: GPL-2.0-only
//! Tables like those of reports: labels to the left, figures to the right, a rule below the header.

use comfy_table::{
    Cell, CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle,
};

const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .content_lines(ContentLineStyle::none().junction(' '));

/// The text of a table in the width it needs; columns for which `is_label` stand to the left.
pub(crate) fn table(
    header: &[String],
    rows: &[Vec<String>],
    is_label: impl Fn(usize) -> bool,
) -> String {
    let cells = |row: &[String]| -> Vec<Cell> {
        let cell = |(column, text): (usize, &String)| {
            let left = is_label(column);
            let alignment = if left { CellAlignment::Left } else { CellAlignment::Right };
            Cell::new(printable(text)).set_alignment(alignment)
        };
        row.iter().enumerate().map(cell).collect()
    };
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(cells(header));
    for row in rows {
        table.add_row(cells(row));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((u16::from(index > 0), 0));
    }
    table.trim_fmt()
}

/// `text` without what would move the cursor: a thread may call itself anything.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A whole number with its thousands apart.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1\u{a0}234\u{a0}567");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[2J\nb"), "a?[2J?b");
    }
}
