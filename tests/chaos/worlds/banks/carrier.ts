/**
 * Carries the files of the run between the service and its bank, by the operator's command or by
 * the routes of a bridge. A process that was killed is started again and repeats its work.
 */

import { join } from "node:path";
import CONFIG from "../../../../deno.json" with { type: "json" };
import { KEYS } from "../../../support/bank/bank.ts";
import { launchCommand, type RunningCommand } from "../../../support/common/running_command.ts";
import { until } from "../../../support/common/until.ts";
import type { RepeatingClient } from "../../harness/client.ts";
import type { Stage } from "../../harness/stage.ts";

const GIVE_UP_MS = 60_000;

export class BankCarrier {
  readonly #folder: string;
  /** Files that the bridge has got, by their names. */
  readonly #got = new Map<string, string>();
  #command: RunningCommand | null = null;
  #files = 0;

  constructor(
    readonly stage: Stage,
    readonly client: RepeatingClient,
    readonly account: { id: string; bridge_token: string },
  ) {
    this.#folder = join(stage.folder, "bank");
  }

  killCommand(): void {
    this.#command?.kill("SIGKILL");
  }

  /** Makes files of the orders that wait, without getting them. */
  async prepare(): Promise<void> {
    await this.#request("POST", "files");
  }

  /** Returns every file that the command has ever written. */
  async exportByCommand(): Promise<string[]> {
    const out = join(this.#folder, "out");
    await this.#run("export", "--out", out);
    const texts: string[] = [];
    for await (const { name } of Deno.readDir(out)) {
      // A command that is killed leaves a part of a file under another name.
      if (name.endsWith(".xml")) texts.push(await Deno.readTextFile(join(out, name)));
    }
    return texts;
  }

  /** Returns every file that the bridge has ever got. */
  async exportByBridge(): Promise<string[]> {
    await this.prepare();
    const { data } = JSON.parse(await this.#request("GET", "files"));
    for (const { name } of data) {
      if (!this.#got.has(name)) this.#got.set(name, await this.#request("GET", `files/${name}`));
    }
    return [...this.#got.values()];
  }

  async importByCommand(text: string): Promise<void> {
    await Deno.mkdir(this.#folder, { recursive: true });
    const path = join(this.#folder, `${++this.#files}.xml`);
    await Deno.writeTextFile(path, text);
    await this.#run("import", path);
  }

  async importByBridge(text: string): Promise<void> {
    await this.#request("POST", "statements", text);
  }

  async #run(...args: string[]): Promise<void> {
    let said = "";
    await until(`deno task bank ${args[0]}`, async () => {
      // With the flags of the task.
      const [, ...task] = CONFIG.tasks.bank.split(" ");
      this.#command = launchCommand({
        args: [Deno.execPath(), ...task, ...args, "--account", this.account.id, "--json"],
        env: { DATABASE_URL: this.stage.postgres.superuser_url, BANK_DETAILS_KEYS: KEYS },
      });
      const { code, output } = await this.#command.ended;
      said = output;
      return code === 0;
    }, GIVE_UP_MS).catch((error) => {
      throw new Error(`${error.message}: ${said.slice(0, 1_000)}`);
    });
  }

  /** Sends a request of the bridge until it succeeds. @throws {Error} if a file is refused */
  async #request(method: string, path: string, body?: string): Promise<string> {
    const { id, bridge_token } = this.account;
    const route = `/api-v1-payments/providers/${id}/${path}`;
    let text = "";
    await until(`the response to ${method} ${path}`, async () => {
      const response = await this.client.send(bridge_token, route, { method, body });
      text = response.text;
      if (response.status === 400) throw new Error(`the service refuses ${path}: ${text}`);
      return response.status === 200;
    }, GIVE_UP_MS);
    return text;
  }
}
