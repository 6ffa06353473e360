// SPDX-License-Identifier: GPL-2.0-only
//! Vectors and traces of the spec.
