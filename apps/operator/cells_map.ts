/**
 * Reads a map of labels to cells as HAProxy does (examples/cells/cells.map). HAProxy accepts a
 * label in two lines; this refuses it.
 */

import { isKeyLabel, LABEL_RULE } from "../../shared/core/api_key.ts";
import { UsageError } from "./command_line.ts";

/** Spreads accounts over hundreds of cells (docs/scaling.md). */
const MAX_LABELS = 4_096;
/** Several times the labels with the longest names, and comments. */
const MAX_CHARACTERS = 1_048_576;
/** A part of a path and of the name of a backend. */
const CELL = /^[a-z0-9][a-z0-9-]{0,31}$/;
/** Longest part of a line in a message. */
const SHOWN = 40;

/**
 * Returns the cell of each label, in the order of the lines.
 * @throws {UsageError} with the line, if a line is malformed or a label is in two lines
 */
export function readMap(text: string): Map<string, string> {
  if (text.length > MAX_CHARACTERS) throw new UsageError("The map is larger than 1 MB");
  const map = new Map<string, string>();
  const lines = new Map<string, number>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const number = index + 1;
    const refuse = (fault: string) => new UsageError(`Line ${number} of the map: ${fault}`);
    // For HAProxy a comment is a whole line that begins with "#".
    if (line.startsWith("#") || /^[ \t]*$/.test(line)) continue;
    const [label, cell, ...rest] = line.split(/[ \t]+/).filter((word) => word !== "");
    if (!isKeyLabel(label!)) throw refuse(`the label ${quote(label!)} ${LABEL_RULE}`);
    if (cell === undefined) throw refuse(`the label "${label}" has no cell`);
    if (!CELL.test(cell)) {
      throw refuse(
        `the cell ${quote(cell)} must be up to 32 lower-case letters, digits and "-", and must ` +
          'not begin with "-"',
      );
    }
    if (rest.length > 0) {
      throw refuse(`${quote(rest.join(" "))} follows the cell: a comment needs a line of its own`);
    }
    const first = lines.get(label!);
    if (first !== undefined) throw refuse(`the label "${label}" is in line ${first} too`);
    map.set(label!, cell);
    lines.set(label!, number);
    if (map.size > MAX_LABELS) throw refuse(`the map has more than ${MAX_LABELS} labels`);
  }
  return map;
}

function quote(text: string): string {
  return `"${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}"`;
}
