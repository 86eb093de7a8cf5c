/** Accounts at providers: the secrets of their variables, and the reasons that nothing is sent. */

import assert from "node:assert/strict";
import { inOurMode, ProviderAccounts } from "../../shared/domain/operations/provider_accounts.ts";
import type { Connector, ProviderEvent } from "../../shared/domain/providers/connector.ts";

const CONNECTORS: Record<string, Partial<Connector>> = {
  stripe: { needs_secret: true },
  evm: { needs_secret: false },
};
const VARIABLES: Record<string, string> = {
  PROVIDER_STRIPE: "sk_live_1",
  PROVIDER_EMPTY: "",
  PROVIDER_SPACE: "sk_live 1",
  PROVIDER_SIGNS: "whsec_1",
  MASTER_SECRET: "of the service",
};

const here = (settings: Record<string, string>) => ({ connector: "evm", settings });
const LOCAL_ONLY = '"base_url" or "rpc_urls" is on this machine, which works in a local start only';
const unset = (name: string) => `the variable ${name} is not set`;
/** Members of an account of a deployed service, and its secret or the words for the operator. */
const ACCOUNTS: [members: object, opened: string][] = [
  [{}, "secret sk_live_1"],
  [{ connector: "evm", secret_name: null }, "secret null"],
  [{ secret_name: "PROVIDER_NONE" }, unset("PROVIDER_NONE")],
  [{ secret_name: "PROVIDER_EMPTY" }, unset("PROVIDER_EMPTY")],
  // A variable that is no secret of a provider.
  [{ secret_name: "MASTER_SECRET" }, unset("MASTER_SECRET")],
  [{ secret_name: "PROVIDER_SPACE" }, "the variable PROVIDER_SPACE has a space"],
  [{ secret_name: null }, "the account names no secret"],
  [{ connector: "moon" }, 'there is no connector "moon"'],
  [here({ base_url: "http://127.0.0.1:1" }), LOCAL_ONLY],
  [here({ rpc_urls: "https://a.example, http://[::1]:1" }), LOCAL_ONLY],
  [here({ rpc_urls: "https://a.example,https://b.example" }), "secret sk_live_1"],
];

function open(members: object, is_local: boolean) {
  const find = (name: string) => (CONNECTORS[name] ?? null) as Connector | null;
  return new ProviderAccounts(find, (name) => VARIABLES[name], is_local).open({
    id: "pac_1",
    environment_id: "env_1",
    connector: "stripe",
    settings: {},
    secret_name: "PROVIDER_STRIPE",
    notification_secret_names: ["PROVIDER_NONE", "PROVIDER_SIGNS", "PROVIDER_EMPTY"],
    ...members,
  });
}

for (const [members, expected] of ACCOUNTS) {
  Deno.test(`open() an account with ${JSON.stringify(members)}: ${expected}`, () => {
    const opened = open(members, false);
    assert.equal(typeof opened === "string" ? opened : `secret ${opened.account.secret}`, expected);
    const local = open(members, true);
    assert.equal(typeof local === "string", typeof opened === "string" && expected !== LOCAL_ONLY);
    if (typeof local === "string") return;
    assert.deepEqual(local.account.notification_secrets, ["whsec_1"], "unset ones sign nothing");
    assert.ok(!("secret_name" in local.account));
  });
}

Deno.test("inOurMode() takes the mode of our payment only from a provider on this machine", () => {
  const event = { livemode: false } as ProviderEvent;
  const modes = ["http://127.0.0.1:1", "https://api.stripe.com"].map((base_url) =>
    inOurMode({ settings: { base_url } }, { provider_events: [event, event] }, true)
      .provider_events.map(({ livemode }) => livemode)
  );
  assert.deepEqual(modes, [[true, true], [false, false]]);
});
