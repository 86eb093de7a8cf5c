/**
 * Words that are gone. Each had a private meaning here; now the code and the documents use the word
 * of the field. A word that comes back fails this test.
 */

import assert from "node:assert/strict";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** A word that is gone. */
interface GoneWord {
  /** Also names of files contain it no more. */
  word: RegExp;
  /** The field's word. */
  now: string;
  /** Lines, as `path: text`, where it may stand, and the reason. */
  allowed?: readonly (readonly [where: RegExp, why: string])[];
}

const GONE: readonly GoneWord[] = [
  { word: /oracle/i, now: "invariant" },
  { word: /torture/i, now: "chaos test" },
  { word: /planted[- _]?bug/i, now: "mutation" },
  { word: /\bmint|(?<!ad)Mint(?!o)/, now: "generate an id" },
  { word: /keep_?transcript|kept_?reply/i, now: "store" },
  {
    word: /answer/i,
    now: "response",
    allowed: [
      [
        /`answer`|, answer: \{|^shared\/sandbox\/transcript_line.ts: +answer: |\{ answer \}/,
        "a member of transcripts",
      ],
      [
        /\)\.answer\.|[.]{3}delivery, answer|\{ endpoint_id, answer/,
        "a member that `trigger --json` prints",
      ],
    ],
  },
  {
    word: /\basked\b/i,
    now: "requested",
    allowed: [[/has asked for the money|wallet is asked to|user .* is asked/, "ordinary English"]],
  },
  { word: /twin/i, now: "concurrent duplicate" },
  {
    word: /relay/i,
    now: "dispatcher",
    allowed: [
      [/\/relay\b|"relay"\), WAKE/, "the path that operators schedule"],
      [/RELAY_TOKEN|[Rr]elay_?[Tt]oken|relay token/, "the variable of its token"],
      [
        /configure_relay|relay_url|relay url|RELAY_URL/,
        "the function that stores address and token",
      ],
      [/token-of-a-relay|6to4 relay/, "other relays"],
    ],
  },
  { word: /\bturns? of the (dispatcher|relay|worker)|failed turn\b/, now: "poll" },
  { word: /suspect|suspicion/i, now: "poison delivery" },
  { word: /lost[ _]claim/i, now: "expired lease" },
  { word: /\blanes?\b/i, now: "queue" },
  {
    word: /\brooms?\b|_rooms?\b|[a-z]Rooms?\b/i,
    now: "quota, capacity or folder",
    allowed: [[/(makes?|no|leaves?|little) room\b/, "ordinary English"]],
  },
  {
    word: /(take|has|free|account)_places?\b|free places?\b|places of the (dispatcher|tenant)/,
    now: "slot or quota",
  },
  {
    word: /NotedRequest|RequestNotes|request[_ ]notes|note_requests|notes about requests/i,
    now: "log entry",
  },
  { word: /\bput[ _]off\b|put_off|puts off/, now: "reschedule" },
  {
    word: /(?<!arti|satis)fact(?!or)/i,
    now: "provider event",
    allowed: [
      [
        /providers facts|`facts`|"facts"|command facts|^\S+ {3}facts {2}|settle, facts/,
        "a command",
      ],
      [/^console\/|^client\/retry\.ts/, "a name with its value; the parts of a failure"],
      [/one-source-for-a-fact|one fact of the API|Each fact of the API/, "ADR 0014"],
      [
        /facts-that-decide|Facts (that decide|1 to 4)|§1, fact|fact\|step|\(\?!fact /,
        "security §1",
      ],
    ],
  },
  {
    word: /finding/i,
    now: "exception or breach",
    allowed: [[/finding a free/, "ordinary English"]],
  },
  {
    word:
      /delivery_exchange|(keep|kept|store|stored|purge|[pv])_exchanges?|(Kept|Stored)Exchange|exchangeOf/,
    now: "log of attempts",
  },
  {
    word:
      /provider_calls?\b|CallRunner|call_runner|\bcall_id\b|calls? (to|of) (a|the) (live )?provider/i,
    now: "operation of a provider",
  },
  { word: /next_look|\blook_at\b|\.look\(|kind === "look"/, now: "sync" },
  {
    word: /claim(?!er|ant)/i,
    now: "reserve, lease, or claim of an idempotency key",
    allowed: [
      [/claim_one|internal\.claim\b|has_claim|claimed (as|k)\b|\[claimed\]|!claimed/, "the key"],
      [
        /\bkeys?\b.*claim|claim\w* .*\bkeys?\b|"claims"|its claim\.$|lock, claim, write/i,
        "the key",
      ],
      [
        /[Tt]he claim (stores|ends|of a dead)|of (the|an abandoned) claim|key, which the claim/,
        "the key",
      ],
      [/idempotency_duplicates_test|begin_trigger/, "the key"],
      [
        /jwt\.claims|token\(claims|part\(claims|reads the claims|claims\.(role|sub)|claims = JSON/,
        "of a JWT",
      ],
    ],
  },
];

/** This file, and a generated one whose text is compressed. */
const WITHOUT_WORDS = ["tests/documents/words_test.ts", "shared/http/openapi_document.ts"];

const FILES = (await projectFiles([
  ...[
    ".ts",
    ".tsx",
    ".sql",
    ".md",
    ".json",
    ".css",
    ".html",
    ".yml",
    ".js",
    ".py",
    ".ci/run",
    ".ci/first_start",
    ".ci/programs",
  ],
])).filter((path) => !WITHOUT_WORDS.includes(path));

const LINES = (await Promise.all(FILES.map(async (path) => {
  const text = await readProjectFile(path);
  return [`${path}:`, ...text.split("\n").map((line) => `${path}: ${line}`)];
}))).flat();

for (const { word, now, allowed = [] } of GONE) {
  Deno.test(`"${now}" has taken the place of ${word}`, () => {
    const found = LINES.filter((line) =>
      word.test(line) && !allowed.some(([where]) => where.test(line))
    );
    assert.deepEqual(found, []);
  });
}
