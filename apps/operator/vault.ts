/**
 * `deno task vault rotate` seals bank details anew with the first key of BANK_DETAILS_KEYS, so that
 * the operator can take the older keys out (ADR 0021). It works in batches beside running servers:
 * a text that something else has changed meanwhile is left as it is. A killed rotation is begun
 * again, and goes over what is done.
 */

import type postgres from "postgres";
import type { Sealed, Vault } from "../../shared/core/vault.ts";
import { sealContextOf } from "../../shared/domain/providers/sealed_details.ts";
import { BankStore } from "../../shared/store/bank_store.ts";
import { action, type Actions, readVault, type Surroundings } from "./command_line.ts";
import { databaseOf } from "./operator_database.ts";

export const USAGE = `Usage: deno task vault rotate [--json]

Seals bank details and files for banks anew with the first key of BANK_DETAILS_KEYS, and prints how
many texts each key has, and how many mandates know their IBAN by it. A mandate takes the first key
at its next payment. A key that has neither can be taken out, after all functions and commands seal
with the first one. A rotation that was stopped can be run again at any time.

  --json     prints one JSON object: {rotated, keys: [{key_id, texts, mandates}]}
`;
/** Texts of one batch. A text of bank details has at most 4 000 characters. */
const BATCH = 500;

interface Place {
  environment_id: string;
  id: string;
}

/** The texts that do not open: their number, and the id of the first one. */
interface Unreadable {
  texts: number;
  first: string | null;
}

/** The texts that a key has sealed, and the mandates that need it. */
interface KeyCount {
  key_id: string;
  texts: number;
  mandates: number;
}

export const ACTIONS: Actions = {
  rotate: action(["json"], ({ json = false }, _, env) => {
    const vault = readVault(env);
    return (surroundings) => rotate(vault, json, surroundings);
  }),
};

/** Rotates all texts, and prints what is left. Returns 1 if a text does not open, or else 0. */
async function rotate(
  vault: Vault,
  is_json: boolean,
  { sql, print, printMessage }: Surroundings,
): Promise<number> {
  let rotated = 0;
  const unreadable: Unreadable = { texts: 0, first: null };
  let after: readonly string[] | null = null;
  for (;;) {
    const places: Place[] = await sql<Place[]>`
      select * from pay.list_sealed_texts(${vault.older_key_ids as string[]}::text[],
        ${after as string[] | null}::text[], ${BATCH})`;
    const last = places.at(-1);
    if (last === undefined) break;
    after = [last.environment_id, last.id];
    for (const batch of batchesOf(places)) {
      rotated += await rotateBatch(sql, vault, batch, unreadable);
    }
  }
  const keys = [
    ...await sql<KeyCount[]>`
    select key_id, texts::integer, mandates::integer from pay.count_sealed_texts()`,
  ];
  print(is_json ? `${JSON.stringify({ rotated, keys })}\n` : textOf(rotated, keys, vault));
  const problems = problemsOf(unreadable, keys, vault);
  for (const problem of problems) printMessage(problem);
  return problems.length > 0 ? 1 : 0;
}

/** Splits places into batches of one environment each. A file is large, so it is one by itself. */
function batchesOf(places: readonly Place[]): Place[][] {
  const batches = Map.groupBy(
    places,
    ({ environment_id, id }) => id.startsWith("bf_") ? id : environment_id,
  );
  return [...batches.values()];
}

/** Rotates the texts of a batch, and counts those that do not open. Returns how many do. */
async function rotateBatch(
  sql: postgres.Sql,
  vault: Vault,
  batch: readonly Place[],
  unreadable: Unreadable,
): Promise<number> {
  const { environment_id } = batch[0]!;
  const store = new BankStore(databaseOf(sql));
  const texts: (Sealed & { id: string; was: string })[] = [];
  for (const { id, ...was } of await store.readSealed(environment_id, batch.map(({ id }) => id))) {
    // Another rotation has done it.
    if (!vault.older_key_ids.includes(was.key_id)) continue;
    const context = sealContextOf(id);
    try {
      const text = await vault.open(was, context);
      texts.push({ id, was: was.sealed, ...await vault.seal(text, context) });
    } catch {
      unreadable.texts++;
      unreadable.first ??= id;
    }
  }
  const [row] = await sql<[{ stored: number }]>`
    select pay.store_sealed_texts(${environment_id}, ${JSON.stringify(texts)})::integer as stored`;
  return row.stored;
}

function textOf(rotated: number, keys: readonly KeyCount[], vault: Vault): string {
  const lines = keys.map((key) => `${key.key_id}: ${needsOf(key)}`);
  const known = new Set(keys.map(({ key_id }) => key_id));
  const free = vault.older_key_ids.filter((id) => !known.has(id))
    .map((id) => `${id}: no texts. Take it out of BANK_DETAILS_KEYS`);
  return [`Sealed ${textsOf(rotated)} anew with ${vault.key_id}`, ...lines, ...free, ""].join("\n");
}

function problemsOf(
  unreadable: Unreadable,
  keys: readonly KeyCount[],
  { key_id: newest, older_key_ids }: Vault,
): string[] {
  const missing = keys.filter(({ key_id }) => key_id !== newest && !older_key_ids.includes(key_id));
  const problems = missing.map((key) =>
    `BANK_DETAILS_KEYS has no key "${key.key_id}", which has ${needsOf(key)}: put it at the end`
  );
  if (unreadable.texts > 0) {
    problems.push(
      `${textsOf(unreadable.texts)} do not open with the key of their id, such as that of ` +
        `${unreadable.first}: BANK_DETAILS_KEYS has another key under this id`,
    );
  }
  return problems;
}

function needsOf({ texts, mandates }: KeyCount): string {
  if (mandates === 0) return textsOf(texts);
  return `${textsOf(texts)} and ${mandates === 1 ? "1 mandate" : `${mandates} mandates`}`;
}

function textsOf(texts: number): string {
  return texts === 1 ? "1 text" : `${texts || "no"} texts`;
}
