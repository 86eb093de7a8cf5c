/**
 * Steps for which the model and the service once differed, and steps that found bugs planted on
 * purpose (torture/planted_bugs.ts). fast-check shrank them. They run before the random steps.
 */

import type { ChangeStep, Step } from "./service_model.ts";

const DAY_MS = 86_400_000;

const paid: ChangeStep = {
  do: "create",
  instrument: "card",
  outcome: null,
  amount: 10,
  is_sandbox: false,
};
const refund = (amount: number | null): ChangeStep => ({
  do: "move",
  target: 0,
  move: { do: "refund", amount },
});
const send = (change: ChangeStep, key: number | null = null): Step => ({ do: "send", change, key });

const made = (instrument: string): ChangeStep => ({ ...paid, instrument } as ChangeStep);
const capture = (amount: number | null): ChangeStep => ({
  do: "move",
  target: 0,
  move: { do: "capture", amount },
});
const advance = (to: string): ChangeStep => ({
  do: "move",
  target: 0,
  move: { do: "advance", to },
});
const endRefund = (refund: number, to: "completed" | "failed"): ChangeStep => ({
  do: "advance_refund",
  target: 0,
  refund,
  to,
});

/** The cases. The test runs each in its own sandbox and then compares the whole state. */
export const SHRUNK_CASES: [name: string, steps: Step[]][] = [
  ["refund the exact rest, then a cent more", [send(paid), send(refund(10)), send(refund(1))]],
  ["refund a cent more than the amount", [send(paid), send(refund(11))]],
  ["refund a part, then a cent more than the rest", [send(paid), send(refund(4)), send(refund(7))]],
  ["refund a part, then the exact rest", [send(paid), send(refund(4)), send(refund(6))]],
  [
    "a key is replayed a moment before its day is over",
    [send(paid, 0), { do: "pass", ms: DAY_MS - 2 }, send(paid, 0)],
  ],
  [
    "a key is new when its day is over, purged or not",
    [send(paid, 0), { do: "pass", ms: DAY_MS - 1 }, send(paid, 0), { do: "purge" }, send(paid, 0)],
  ],
  [
    "a purge within the day forgets no key",
    [send(paid, 0), { do: "pass", ms: DAY_MS - 60_000 }, { do: "purge" }, send(paid, 0)],
  ],
  [
    "another body after the day is no conflict",
    [send(paid, 0), { do: "pass", ms: DAY_MS }, send({ ...paid, amount: 11 } as ChangeStep, 0)],
  ],
  [
    "a payment goes after thirty days and its money stays",
    [
      send(paid),
      { do: "pass", ms: 30 * DAY_MS },
      send(paid),
      { do: "purge" },
      { do: "look" },
      send({ do: "transfer", amount: 20, destination: "approved", is_manual: false }),
    ],
  ],
  [
    "a transfer takes all there is and not a cent more",
    [
      send(paid),
      send({ do: "transfer", amount: 11, destination: "approved", is_manual: false }, 1),
      send({ do: "transfer", amount: 10, destination: "approved", is_manual: true }),
      send({ do: "transfer", amount: 1, destination: "approved", is_manual: false }),
    ],
  ],
  [
    "a reset forgets keys, and what is made anew under one is kept",
    [send(paid, 0), { do: "reset" }, send(paid, 0), send(paid, 0)],
  ],
  [
    "capture a part, then the rest",
    [send(made("card_captured_later")), send(capture(4)), send(capture(6))],
  ],
  [
    "capture a cent more than was authorized, then all",
    [send(made("card_captured_later")), send(capture(11)), send(capture(null))],
  ],
  [
    "refund a cent more than a captured part, then the part",
    [send(made("card_captured_later")), send(capture(4)), send(refund(5)), send(refund(4))],
  ],
  [
    "a pending refund holds its amount until it fails",
    [
      send(made("card_refunds_wait")),
      send(refund(6)),
      send(refund(5)),
      send(refund(4)),
      send(refund(null)),
      send(endRefund(1, "failed")),
      send(endRefund(1, "completed")),
      send(endRefund(0, "completed")),
      send(refund(6)),
      send(endRefund(0, "completed")),
    ],
  ],
  [
    "a pending refund completes while its payment is charged back, and the dispute is won",
    [
      send(made("card_refunds_wait")),
      send(refund(4)),
      send(advance("chargeback")),
      send(endRefund(0, "completed")),
      send(advance("completed")),
      send(advance("partially_refunded")),
      send(endRefund(0, "completed")),
    ],
  ],
  [
    "a bank returns a payment of which a part was refunded",
    [send(made("sepa")), send(refund(4)), send(advance("failed")), send(refund(1))],
  ],
];
