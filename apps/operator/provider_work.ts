/**
 * The commands of `deno task providers` that settle operations and provider events. A result that
 * the operator decides takes the path of every provider event: the pure functions of
 * `shared/domain/operations` decide it, and `pay.record` writes it. So it cannot meet the result of
 * a worker twice.
 */

import type postgres from "postgres";
import { formatTime, systemClock } from "../../shared/core/clock.ts";
import { formatAmount, parseDecimal } from "../../shared/core/currency.ts";
import { idGenerator, systemRandom } from "../../shared/core/ids.ts";
import type { EventContext } from "../../shared/domain/changes/event.ts";
import { readRefund, readSubject } from "../../shared/domain/changes/read_resource.ts";
import {
  decideResult,
  decideStoredEvent,
  effectOn,
} from "../../shared/domain/operations/decide_result.ts";
import {
  inOurMode,
  ProviderAccounts,
  type ReadyAccount,
} from "../../shared/domain/operations/provider_accounts.ts";
import {
  type Operation,
  portOf,
  type ProviderEvent,
  type ProviderReply,
  type StoredProviderEvent,
} from "../../shared/domain/providers/connector.ts";
import { railOf } from "../../shared/domain/rails.ts";
import { eventOf, operationOf } from "../../shared/domain/providers/operation.ts";
import { readDocsUrl } from "../../shared/functions/read_settings.ts";
import type { Payment } from "../../shared/schema/payment.ts";
import type { Refund } from "../../shared/schema/refund.ts";
import type { Transfer } from "../../shared/schema/transfer.ts";
import { BankStore } from "../../shared/store/bank_store.ts";
import type { ProviderRecord, ProviderWork } from "../../shared/store/provider_rows.ts";
import {
  ProviderStore,
  readWork,
  WORK_COLUMNS,
  type WorkRow,
} from "../../shared/store/provider_store.ts";
import { Retries } from "../../shared/jobs/retries.ts";
import { action, CommandError, readId, type Surroundings, type Values } from "./command_line.ts";
import { databaseOf } from "./operator_database.ts";
import { EntryDetails } from "./entry_details.ts";
import { checkResult, eventsIn, type ProviderEvents, reasonOf } from "./provider_results.ts";
import {
  type ProviderEventName,
  readDismissal,
  readMatch,
  readSettlement,
} from "./provider_work_command.ts";
import {
  type ListedOperation,
  type ListedProviderEvent,
  renderEvents,
  renderOperations,
} from "./provider_work_table.ts";

const SYNC_DEADLINE_MS = 20_000;
/** The statuses of orders that a bank can take back, as in `pay.split_bank_entry`. */
const CAN_COME_BACK: ReadonlySet<string> = new Set(["completed", "partially_refunded", "refunded"]);

/** The commands. Their work throws `CommandError`. */
export const WORK_ACTIONS = {
  calls: action(
    ["all", "json"],
    (values) => (surroundings) => listOperations(surroundings, values),
  ),
  facts: action(
    ["json"],
    ({ json = false }) => (surroundings) => listEvents(surroundings, json),
  ),
  retry: action(["…", "json"], ({ json = false }, names) => {
    const id = readId(names, "pc_", "operation");
    return (surroundings) => new Desk(surroundings, json).retry(id);
  }),
  settle: action(["…", "succeeded", "failed", "unsynced", "json"], (values, names) => {
    const settlement = readSettlement(values, names);
    return (surroundings) => new Desk(surroundings, values.json === true).settle(settlement);
  }),
  match: action(["…", "fee", "json"], (values, names) => {
    const match = readMatch(values, names);
    return (surroundings) => new Desk(surroundings, values.json === true).match(match);
  }),
  dismiss: action(["…", "reason", "json"], (values, names) => {
    const { event, reason } = readDismissal(values, names);
    return async ({ sql, print }) => {
      await dismiss(sql, event, reason);
      const dismissed = nameOf(event);
      print(values.json ? asJson({ dismissed }) : `Dismissed ${dismissed}\n`);
    };
  }),
};

async function listOperations(
  { sql, print }: Surroundings,
  { all = false, json = false }: Values<"all" | "json">,
): Promise<void> {
  const operations = await sql<ListedOperation[]>`
    select * from pay.list_unsettled_operations(p_all => ${all})`;
  print(
    json ? asJson(operations.map(withNumbers)) : renderOperations(operations, systemClock(), all),
  );
}

async function listEvents(
  { sql, env, print }: Surroundings,
  is_json: boolean,
): Promise<void> {
  const rows = await sql<ListedProviderEvent[]>`select * from pay.list_reported_events()`;
  const details = new EntryDetails(sql, env);
  const provider_events: ListedProviderEvent[] = [];
  for (const row of rows) {
    provider_events.push({ ...row, about: row.file === null ? null : await details.read(row) });
  }
  print(
    is_json
      ? asJson(provider_events.map(withNumbers))
      : renderEvents(provider_events, systemClock()),
  );
}

async function dismiss(sql: postgres.Sql, event: ProviderEventName, reason: string): Promise<void> {
  const [row] = await sql`select pay.dismiss_provider_event(
    p_account_id => ${event.account_id}, p_reference => ${event.reference},
    p_reason => ${reason})::int as found`;
  if (row!.found === 1) return;
  throw row!.found === 0 ? unreported(event) : ambiguous(event);
}

type Settlement = ReturnType<typeof readSettlement>;
type Match = ReturnType<typeof readMatch>;

/** Settles operations and provider events of one database. */
class Desk {
  readonly #surroundings: Surroundings;
  readonly #is_json: boolean;
  readonly #store: ProviderStore;
  readonly #docs_url: string | null;
  readonly #details: EntryDetails;

  constructor(surroundings: Surroundings, is_json: boolean) {
    this.#surroundings = surroundings;
    this.#is_json = is_json;
    this.#store = new ProviderStore(databaseOf(surroundings.sql));
    this.#docs_url = readDocsUrl(surroundings.env) ?? null;
    this.#details = new EntryDetails(surroundings.sql, surroundings.env);
  }

  /** Syncs with the provider, and records the result if there is one. */
  async retry(id: string): Promise<void> {
    const work = await this.#openOperation(id);
    const operation = operationOf(work.operation!, work);
    const ready = this.#open(work);
    const reply = await sync(ready, operation);
    const provider_events = eventsIn(
      reply,
      ready,
      `${id} left unchanged`,
      "nothing of this operation",
    );
    await this.#record(work, operation, ours(work, provider_events));
  }

  /** Records the result that the operator has found, or that the operation did nothing. */
  async settle({ id, reference, syncs }: Settlement): Promise<void> {
    const work = await this.#openOperation(id);
    const operation = operationOf(work.operation!, work);
    const ready = this.#open(work);
    if (reference === null) return await this.#settleFailed(work, operation, ready, syncs);
    const reply = await portOf(ready.connector, operation)
      .find(ready.account, operation, reference, deadline());
    const provider_events = eventsIn(reply, ready, `${id} left unchanged`, `no ${reference}`);
    const [first, ...others] = ours(work, provider_events);
    checkResult(operation, first, reference);
    const { subject, refund } = operation;
    const own = (event: ProviderEvent): ProviderEvent => ({
      ...event,
      subject_id: subject.id,
      source: "operator",
    });
    const result = { ...own(first), refund_id: refund?.id ?? first.refund_id };
    await this.#record(work, operation, [result, ...others.map(own)]);
  }

  async #settleFailed(
    work: ProviderWork,
    operation: Operation,
    ready: ReadyAccount,
    syncs: boolean,
  ): Promise<void> {
    const { id } = operation;
    if (work.operation!.state !== "operator") {
      throw new CommandError(
        `${id} left unchanged: the service still asks for its result. Use "retry ${id}", or wait ` +
          'until "calls" shows the state operator',
      );
    }
    const reply = syncs ? await sync(ready, operation) : null;
    if (reply !== null && !("absent" in reply)) {
      const [found] = ours(work, eventsIn(reply, ready, `${id} left unchanged`, ""));
      const { effect } = effectOn(operation, found, this.#contextOf(work));
      // A result that contradicts the books can never be recorded, so it does not stop the
      // operator.
      if (effect.outcome !== "exception" && effect.outcome !== "unmatched") {
        throw new CommandError(
          `${id} left unchanged: ${ready.connector.name} says ${found.state} ` +
            `(${found.reference}). Use "retry ${id}"`,
        );
      }
    }
    const failed = eventOf(operation, "failed", {
      account_id: work.account.id,
      reference: `${id}:failed`,
      provider_reference: operation.provider_reference,
      at: formatTime(systemClock()),
      failure_code: "processing_failed",
      source: "operator",
    });
    await this.#record(work, operation, [failed]);
  }

  /** Applies a provider event to what the operator has chosen. */
  async match(command: Match): Promise<void> {
    const [target, ...others] = command.targets;
    if (others.length > 0 || target.startsWith("bf-")) return await this.#split(command);
    return await this.#matchOne(command, target);
  }

  async #matchOne({ event: name, fee }: Match, target: string): Promise<void> {
    for (const retries = new Retries();; await retries.again(() => busy(nameOf(name)))) {
      const work = await this.#readEvent(name, target);
      const subject = readSubject(work.subject_body!);
      const refund = work.refund_body === null ? null : readRefund(work.refund_body);
      const [given] = ours(work, [work.event!]);
      const refund_id = refund?.id ?? null;
      const moved = movementOf(subject, refund, work.event!);
      const entry = { ...work.event!, environment_id: work.environment_id };
      const is_paid = moved?.op === "authorize" && moved.state === "succeeded";
      const payers = await this.#details.payers(entry, is_paid ? subject.id : null);
      const fee_minor = fee === null ? null : feeOf(fee, work.event!);
      const event: StoredProviderEvent = {
        ...work.event!,
        ...given,
        ...moved,
        subject_id: subject.id,
        refund_id,
        ...fee_minor !== null &&
          { bank: { ...work.event!.bank, charge_minor: [fee_minor, fee_minor] } },
      };
      const operation = work.operation === null || work.operation.state === "settled"
        ? null
        : operationOf(work.operation!, work);
      const { environment_id } = work;
      const context = this.#contextOf(work);
      const dispute = work.dispute_body === null ? null : JSON.parse(work.dispute_body);
      const decided = decideStoredEvent(
        { subject, refund, dispute, deposit: work.deposit, operation: operation },
        environment_id,
        event,
        context,
      );
      if (decided.effect.outcome !== "applied") {
        throw new CommandError(
          `${nameOf(name)} left unchanged: ${reasonOf(decided.effect, target)}`,
        );
      }
      if (fee_minor !== null && !hasFee(decided.record, fee_minor)) {
        throw new CommandError(
          `${nameOf(name)} left unchanged: --fee is for an entry of a bank about an order`,
        );
      }
      if (await this.#write(decided.record) !== "stale") {
        await this.#details.settle(entry, payers);
        const { status } = decided;
        return this.#report({ matched: nameOf(name), target, subject_id: subject.id, status });
      }
    }
  }

  /** Books an entry of a bank as the orders that the operator has chosen. */
  async #split({ event: name, targets, fee }: Match): Promise<void> {
    const refuse = (reason: string) =>
      new CommandError(`${nameOf(name)} left unchanged: ${reason}`);
    const { event, account } = await this.#readReported(name, null);
    const { op, state, currency, amount_minor, bank, reference } = event!;
    if (op !== "adjustment" || !bank?.entry) {
      throw refuse("only an entry of a bank that names nothing can be several orders");
    }
    const is_credit = state === "returned";
    const orders = new Map<string, number>();
    for (const target of targets) {
      const found = (await new BankStore(databaseOf(this.#surroundings.sql))
        .findOrders(account.id, target))
        .filter((order) =>
          order.state === "exported" && order.currency === currency &&
          ((order.kind === "collection") === is_credit
            ? order.is_open
            : CAN_COME_BACK.has(order.status))
        );
      if (found.length === 0) {
        const [there, back] = is_credit ? ["collection", "payout"] : ["payout", "collection"];
        throw refuse(
          `${target} has no exported ${there} in ${currency} without a result, and no ${back} ` +
            "that can come back",
        );
      }
      for (const order of found) orders.set(order.id, order.amount_minor);
    }
    const fee_minor = fee === null ? 0 : feeOf(fee, event!);
    const sum = [...orders.values()].reduce((sum, minor) => sum + minor, 0);
    const expected = sum + (is_credit ? -fee_minor : fee_minor);
    if (expected !== amount_minor) {
      const shown = [expected, amount_minor].map((minor) => formatAmount(minor, currency));
      throw refuse(`the orders and the fee come to ${shown[0]}, and the entry is ${shown[1]}`);
    }
    const ids = [...orders.keys()];
    const [row] = await this.#surroundings.sql`select pay.split_bank_entry(
      p_account_id => ${account.id}, p_reference => ${reference},
      p_order_ids => ${ids}::text[], p_fee_minor => ${fee_minor}::bigint) as is_split`;
    if (!row!.is_split) throw busy(nameOf(name));
    await this.#details.settle({ account_id: account.id, reference }, []);
    this.#surroundings.print(
      this.#is_json
        ? asJson({ matched: nameOf(name), targets: ids })
        : `Matched ${nameOf(name)}: the service books it as ${ids.join(", ")}\n`,
    );
  }

  async #record(
    work: ProviderWork,
    operation: Operation,
    provider_events: ProviderEvents,
  ): Promise<void> {
    const { id, environment_id, refund } = operation;
    for (const retries = new Retries();; await retries.again(() => busy(id))) {
      const refund_id = refund?.id ?? null;
      const present = await this.#store
        .readSubject(environment_id, operation.subject.id, refund_id, provider_events[0]);
      if (!present) throw busy(id);
      const { booked_minor } = present;
      const current = operationOf(operation, present, operation.dispute);
      const context = this.#contextOf(work);
      const { subject } = current;
      const { effect, status } = effectOn(current, provider_events[0], context, booked_minor);
      if (effect.outcome !== "applied" && effect.outcome !== "ignored") {
        throw new CommandError(`${id} left unchanged: ${reasonOf(effect, subject.id)}`);
      }
      const { record } = decideResult(current, { provider_events }, context, {
        booked_minor,
        records_fees: false,
      });
      const outcome = await this.#write(record);
      if (outcome === "known") {
        throw new CommandError(
          `${id} left unchanged: ${provider_events[0].reference} is recorded already`,
        );
      }
      if (outcome === "recorded") {
        return this.#report({
          settled: id,
          result: provider_events[0].state,
          subject_id: subject.id,
          status,
        });
      }
    }
  }

  async #write(record: ProviderRecord): Promise<"recorded" | "stale" | "known"> {
    const [result] = await this.#store.record([record]);
    return result!.outcome;
  }

  async #openOperation(id: string): Promise<ProviderWork> {
    const rows = await this.#surroundings.sql.unsafe<WorkRow[]>(
      `select ${WORK_COLUMNS} from pay.read_provider_operation(p_id => $1::text) w`,
      [id],
    );
    const [work] = rows.map(readWork);
    if (!work || work.subject_body === null) throw new CommandError(`${id}: no such operation`);
    if (work.operation!.state === "settled") throw new CommandError(`${id} is settled already`);
    return work;
  }

  async #readEvent(name: ProviderEventName, target: string): Promise<ProviderWork> {
    const work = await this.#readReported(name, target);
    if (work.subject_body !== null) return work;
    throw new CommandError(`${target}: the environment of the provider event has no such resource`);
  }

  /** @param target the subject or refund that is read with it */
  async #readReported(name: ProviderEventName, target: string | null): Promise<ProviderWork> {
    const [subject_id, refund_id] = target?.startsWith("re_") ? [null, target] : [target, null];
    const rows = await this.#surroundings.sql.unsafe<WorkRow[]>(
      `select ${WORK_COLUMNS} from pay.read_reported_events(p_account_id => $1::text,
        p_reference => $2::text, p_subject_id => $3::text, p_refund_id => $4::text) w`,
      [name.account_id, name.reference, subject_id, refund_id],
    );
    const [work, ...more] = rows.map(readWork);
    if (!work) throw unreported(name);
    if (more.length > 0) throw ambiguous(name);
    return work;
  }

  #open(work: ProviderWork): ReadyAccount {
    const { findConnector, env } = this.#surroundings;
    const opened = new ProviderAccounts(findConnector, env, true).open(work.account);
    if (typeof opened !== "string") return opened;
    throw new CommandError(
      `Cannot ask ${work.account.id}: ${opened} here. Set it as the functions have it`,
    );
  }

  /** Makes the origin of the events, which belong to no request. */
  #contextOf({ livemode }: ProviderWork): EventContext {
    const at_ms = systemClock();
    return {
      request_id: null,
      idempotency_key: null,
      livemode,
      at_ms,
      newId: idGenerator(at_ms),
      random: systemRandom,
      docs_url: this.#docs_url,
    };
  }

  #report(done: { subject_id: string; status: string } & Record<string, string>): void {
    const { subject_id, status, ...names } = done;
    const [[verb, name]] = Object.entries(names) as [[string, string]];
    const line = `${
      verb === "settled" ? "Settled" : "Matched"
    } ${name}: ${subject_id} is ${status}\n`;
    this.#surroundings.print(this.#is_json ? asJson(done) : line);
  }
}

/** Returns the fee that the operator names, in minor units. */
function feeOf(text: string, { currency }: ProviderEvent): number {
  const fee_minor = parseDecimal(text, currency);
  if (fee_minor !== null && fee_minor > 0) return fee_minor;
  throw new CommandError(`--fee ${text} is not an amount in ${currency} above zero`);
}

function hasFee({ change }: ProviderRecord, fee_minor: number): boolean {
  return change?.ledger.some(({ kind, amount_minor }) =>
    kind === "fee" && amount_minor === fee_minor
  ) ?? false;
}

/** Returns what an entry of a bank that names nothing is for a payment, refund or transfer. */
function movementOf(
  subject: Payment | Transfer,
  refund: Refund | null,
  { bank, op, state }: StoredProviderEvent,
): Pick<ProviderEvent, "op" | "state" | "failure_code"> | null {
  if (!bank?.entry || op !== "adjustment") return null;
  // `returned` is a credit.
  const back = { state: "returned", failure_code: "bank_return" } as const;
  if (subject.object === "payment" && refund === null) {
    if (railOf(subject).bank === null) return null;
    return { op: "authorize", ...state === "returned" ? { state: "succeeded" } : back };
  }
  return { op: refund ? "refund" : "transfer", ...state === "returned" ? back : { state } };
}

/** Returns provider events in the mode of our payment, as the worker reads them. */
function ours(
  { account, livemode }: ProviderWork,
  provider_events: ProviderEvents,
): ProviderEvents {
  return inOurMode(account, { provider_events }, livemode).provider_events;
}

function sync({ account, connector }: ReadyAccount, operation: Operation): Promise<ProviderReply> {
  return portOf(connector, operation).sync(account, operation, deadline());
}

function deadline(): AbortSignal {
  return AbortSignal.timeout(SYNC_DEADLINE_MS);
}

function nameOf({ account_id, reference }: ProviderEventName): string {
  return account_id === null ? reference : `${account_id}/${reference}`;
}

function unreported(name: ProviderEventName): CommandError {
  return new CommandError(
    `${nameOf(name)}: no unmatched provider event or exception has this reference`,
  );
}

function ambiguous(name: ProviderEventName): CommandError {
  return new CommandError(
    `${nameOf(name)} is a provider event of several accounts: write pac_.../${name.reference}`,
  );
}

function busy(name: string): CommandError {
  return new CommandError(`${name} left unchanged: others change the same payment. Try again`);
}

/** Returns a row whose amounts are numbers, as in responses of the API. */
function withNumbers<Row extends { amount_minor: string }>(row: Row) {
  const { booked_minor } = row as { booked_minor?: string };
  return {
    ...row,
    amount_minor: Number(row.amount_minor),
    ...(booked_minor !== undefined && { booked_minor: Number(booked_minor) }),
  };
}

function asJson(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
