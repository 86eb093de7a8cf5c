/** The table of the places of requests in contract §5, from the numbers of the service. */

import { renderTextTable } from "./markdown_table.ts";
import { COSTLY_READS, LARGE_BODIES, PLACE_BOUNDS } from "../../shared/jobs/places.ts";

export function renderPlacesTable(): string {
  const { sandboxes, live, long_waits, page_waits, key_checks, keyless } = PLACE_BOUNDS;
  const rows: [request: string, owner: string, of_one: number, in_all: number | "–"][] = [
    ["with a test key", "account", sandboxes.of_owner, sandboxes.in_all],
    ["with a live key", "account", live.of_owner, live.in_all],
    [
      "of these: waits for the end of a `delay` ([faults](#faults)) for deliveries of an inbox or for [changes](#changes), or gets a transcript, until its end",
      "account",
      long_waits.of_owner,
      long_waits.in_all,
    ],
    ["of these: waits for changes", "account", page_waits.of_owner, page_waits.in_all],
    [
      "of these: waits for a list of a costly filter",
      "account",
      COSTLY_READS.waiting_of_owner,
      "–",
    ],
    [
      "of these: waits for its turn with a body above 4 096 bytes",
      "account",
      LARGE_BODIES.waiting_of_owner,
      "–",
    ],
    ["with a key that is new to the instance", "network", key_checks.of_owner, key_checks.in_all],
    ["without an API key, such as a notification", "network", keyless.of_owner, keyless.in_all],
  ];
  const head = ["The request", "Counts for its", "Of one", "In all"];
  return renderTextTable(head, rows.map((row) => row.map(String))).join("\n");
}
