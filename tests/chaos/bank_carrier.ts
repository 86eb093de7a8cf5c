/**
 * Carries the files of the run between the service and its bank, by the operator's command or by
 * the routes of a bridge. A process that was killed is started again and repeats its work.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../support/common/until.ts";
import type { ApiServer, Stage } from "./stage.ts";

const COMMAND = fileURLToPath(new URL("../../apps/operator/bank.ts", import.meta.url));
const RESPONSE_DEADLINE_MS = 15_000;
const GIVE_UP_MS = 60_000;

/** Where the files go. */
interface CarrierOptions {
  stage: Stage;
  servers: readonly ApiServer[];
  account_id: string;
  bridge_token: string;
  bank_details_keys: string;
}

/** The operator with the command, and the bridge. */
export class BankCarrier {
  readonly #options: CarrierOptions;
  readonly #folder: string;
  /** Files that the bridge has got, by their names. */
  readonly #got = new Map<string, string>();
  #child: Deno.ChildProcess | null = null;
  #files = 0;
  requests = 0;

  constructor(options: CarrierOptions) {
    this.#options = options;
    this.#folder = join(options.stage.folder, "bank");
  }

  /** Kills the command, if it runs. */
  killCommand(): void {
    try {
      this.#child?.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  }

  /** Makes files of the orders that wait, without getting them. */
  async prepare(): Promise<void> {
    await this.#request("POST", "files");
  }

  /** Exports by the command. Returns every file that it has ever written. */
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

  /** Exports by the bridge. Returns every file that it has ever got. */
  async exportByBridge(): Promise<string[]> {
    await this.prepare();
    const { data } = JSON.parse(await this.#request("GET", "files"));
    for (const { name } of data) {
      if (!this.#got.has(name)) this.#got.set(name, await this.#request("GET", `files/${name}`));
    }
    return [...this.#got.values()];
  }

  /** Imports a file by the command. */
  async importByCommand(text: string): Promise<void> {
    await Deno.mkdir(this.#folder, { recursive: true });
    const path = join(this.#folder, `${++this.#files}.xml`);
    await Deno.writeTextFile(path, text);
    await this.#run("import", path);
  }

  /** Imports a file by the bridge. */
  async importByBridge(text: string): Promise<void> {
    await this.#request("POST", "statements", text);
  }

  /** Runs the command until it succeeds. */
  async #run(...args: string[]): Promise<void> {
    const { stage, account_id, bank_details_keys } = this.#options;
    let said = "";
    await until(`deno task bank ${args[0]}`, async () => {
      this.#child = new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", COMMAND, ...args, "--account", account_id, "--json"],
        env: { DATABASE_URL: stage.postgres.superuser_url, BANK_DETAILS_KEYS: bank_details_keys },
        stdout: "piped",
        stderr: "piped",
      }).spawn();
      const { success, stdout, stderr } = await this.#child.output();
      this.#child = null;
      said = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("");
      return success;
    }, GIVE_UP_MS).catch((error) => {
      throw new Error(`${error.message}: ${said.slice(0, 1_000)}`);
    });
  }

  /** Sends a request of the bridge until it gets a response. A refused file is an error. */
  async #request(method: string, path: string, body?: string): Promise<string> {
    const { servers, account_id, bridge_token } = this.#options;
    let text = "";
    await until(`the response to ${method} ${path}`, async () => {
      const { base_url } = servers[this.requests++ % servers.length]!;
      const url = `${base_url}/api-v1-payments/providers/${account_id}/${path}`;
      const headers = {
        "Authorization": `Bearer ${bridge_token}`,
        ...(body !== undefined && { "Content-Type": "application/xml" }),
      };
      const response = await fetch(url, {
        method,
        headers,
        ...(body !== undefined && { body }),
        signal: AbortSignal.timeout(RESPONSE_DEADLINE_MS),
      }).catch(() => null);
      text = await response?.text().catch(() => "") ?? "";
      if (response?.status === 400) throw new Error(`the service refuses ${path}: ${text}`);
      return response?.status === 200 && text !== "";
    }, GIVE_UP_MS);
    return text;
  }
}
