/** The sequence of collections by one mandate: each place after each history. */

import assert from "node:assert/strict";
import {
  MANDATE_SEQUENCES,
  type MandateSequence,
  sequenceFault,
} from "../../shared/core/mandate_sequence.ts";

/** Earlier collections, and the places that the next one can have. */
const ALLOWED: [earlier: MandateSequence[], next: MandateSequence[]][] = [
  [[], ["first", "recurring", "final", "one_off"]],
  [["first"], ["recurring", "final"]],
  [["recurring"], ["recurring", "final"]],
  [["first", "recurring"], ["recurring", "final"]],
  [["recurring", "recurring", "final"], []],
  [["final"], []],
  [["one_off"], []],
];

for (const [earlier, allowed] of ALLOWED) {
  for (const next of MANDATE_SEQUENCES) {
    const is_allowed = allowed.includes(next);
    const verb = is_allowed ? "allows" : "refuses";
    const history = earlier.join(", ") || "nothing";
    Deno.test(`sequenceFault() ${verb} ${next} after ${history}`, () => {
      assert.equal(sequenceFault(earlier, next) === null, is_allowed);
    });
  }
}
