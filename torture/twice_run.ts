/**
 * R10: the sandbox is deterministic. One client and then many clients send the same stories to two
 * sandboxes. Except for ids and times every answer and every event must be the same.
 */

import { callApi } from "./api_call.ts";
import type { Verdict } from "./evidence.ts";
import { planOf, type Story } from "./plan.ts";
import { requestOf } from "./request.ts";
import type { SandboxKey } from "./sandbox.ts";
import { StoryIds } from "./story_ids.ts";
import { type Stage, untilWell } from "./stage.ts";

const MANY = 64;
/** Ids and times: they differ between the two sandboxes. */
const VARYING =
  /\b(pay|re|dp|tr|evt|req|le|txn|env|key)_[0-9a-z]{26}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;
/** Actions whose answer depends on other stories. */
const SHARED: ReadonlySet<string> = new Set(["list", "balance", "reset"]);

/** Runs the stories twice and compares. */
export async function runTwice(
  stage: Stage,
  seed: number,
  operations: number,
): Promise<Verdict[]> {
  const server = await stage.startServer();
  await untilWell(server);
  // Without transfers: their order decides which of them finds money.
  const stories = planOf(seed, operations, 0).stories
    .filter(({ sandbox }) => sandbox === "payments" || sandbox === "mixed");
  const [one, many] = [await stage.makeSandbox("one"), await stage.makeSandbox("many")];
  const first = await tellAll(server.base_url, one, stories, 1);
  const second = await tellAll(server.base_url, many, stories, MANY);
  const findings: string[] = [];
  let answers = 0;
  for (const [i, story] of stories.entries()) {
    answers += first[i]!.told.length;
    if (first[i]!.told.join("\n") !== second[i]!.told.join("\n")) {
      findings.push(`story ${story.number} was answered differently`);
    }
  }
  const events = [await eventsOf(stage, one, first), await eventsOf(stage, many, second)];
  const differing = events[0]!.findIndex((text, i) => text !== events[1]![i]);
  if (differing !== -1) findings.push(`story ${stories[differing]!.number} has different events`);
  const count = events[0]!.join("").split("evt").length - 1;
  if (answers === 0 || count === 0) findings.push("nothing was compared");
  return [{
    promise: "R10",
    says: `${answers} requests sent twice, by 1 and by ${MANY} clients; ${count} equal events`,
    findings,
  }];
}

/** The answers of a story, and its payment. */
interface ToldStory {
  id: string;
  told: string[];
}

async function tellAll(
  base_url: string,
  { text }: SandboxKey,
  stories: Story[],
  clients: number,
): Promise<ToldStory[]> {
  const told: ToldStory[] = [];
  let next = 0;
  await Promise.all(Array.from({ length: clients }, async () => {
    for (let i = next++; i < stories.length; i = next++) {
      told[i] = await tellOne(base_url, text, stories[i]!);
    }
  }));
  return told;
}

/** Sends the requests one after another, because simultaneous requests may arrive in any order. */
async function tellOne(base_url: string, api_key: string, story: Story): Promise<ToldStory> {
  const ids = new StoryIds();
  const told: string[] = [];
  for (const { number, action } of story.groups.flat()) {
    if (SHARED.has(action.do)) continue;
    const { method, path, body } = requestOf(action, ids.idFor(action));
    const answer = await callApi(base_url, api_key, path, {
      ...(method === "POST" && { body: body ?? {}, key: `twice-${number}` }),
    });
    ids.learn(action, answer.status, answer.text);
    told.push(`${action.do} ${answer.status} ${answer.text.replaceAll(VARYING, "$1")}`);
    if (ids.subject === null) break;
  }
  return { id: ids.subject ?? "none", told };
}

/** The events of the payment of each story, as one text. */
async function eventsOf(
  { sql }: Stage,
  { environment_id }: SandboxKey,
  stories: ToldStory[],
): Promise<string[]> {
  const rows = await sql<{ subject_id: string; text: string }[]>`
    select subject_id, string_agg(body, ' ' order by sequence) as text
    from pay.events where environment_id = ${environment_id} group by subject_id`;
  const texts = new Map(rows.map(({ subject_id, text }) => [subject_id, text]));
  return stories.map(({ id }) => (texts.get(id) ?? "").replaceAll(VARYING, "$1"));
}
