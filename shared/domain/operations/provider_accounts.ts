/**
 * The accounts at providers as connectors need them: with the secrets that the stored account only
 * names (security §2, provider secrets).
 */

import type { CheckoutMethod } from "../../core/checkout_methods.ts";
import { isLoopback } from "../../core/loopback.ts";
import type {
  Connector,
  ConnectorFinder,
  ProviderAccount,
  ProviderEvent,
} from "../providers/connector.ts";
import type { CheckoutPrice } from "../../schema/checkout.ts";
import type { StoredAccount } from "../../store/provider_rows.ts";

/** Reads a secret from the settings of the functions. Its name begins with `PROVIDER_`. */
type SecretReader = (name: string) => string | undefined;

export interface ReadyAccount {
  account: ProviderAccount;
  connector: Connector;
}

/** The name of a variable with a secret. No other variable can be read. */
const SECRET_NAME = /^PROVIDER_[A-Z0-9_]{1,60}$/;

export class ProviderAccounts {
  readonly #find: ConnectorFinder;
  readonly #read: SecretReader;
  readonly #is_local: boolean;

  /** @param is_local true: a provider may run on the own machine */
  constructor(find: ConnectorFinder, read: SecretReader, is_local: boolean) {
    this.#find = find;
    this.#read = read;
    this.#is_local = is_local;
  }

  /**
   * Returns the account with its secrets. Returns words for the operator if the account cannot be
   * used: then nothing may be sent.
   */
  open(stored: StoredAccount): ReadyAccount | string {
    const connector = this.#find(stored.connector);
    if (!connector) return `there is no connector "${stored.connector}"`;
    if (isOnLoopback(stored) && !this.#is_local) {
      return '"base_url" or "rpc_urls" is on this machine, which works in a local start only';
    }
    const { secret_name, notification_secret_names, ...account } = stored;
    const secret = secret_name === null ? null : this.#secret(secret_name);
    if (secret_name !== null && secret === null) return `the variable ${secret_name} is not set`;
    if (secret === null && connector.needs_secret) return "the account names no secret";
    if (secret !== null && /\s/.test(secret)) return `the variable ${secret_name} has a space`;
    return {
      connector,
      account: {
        ...account,
        secret,
        notification_secrets: notification_secret_names
          .flatMap((name) => this.#secret(name) ?? []),
      },
    };
  }

  async takes(
    { connector, settings }: StoredAccount,
    method: CheckoutMethod,
    price: CheckoutPrice,
  ): Promise<boolean> {
    return await this.#find(connector)?.takes(settings, method, price) ?? false;
  }

  #secret(name: string): string | null {
    return SECRET_NAME.test(name) ? this.#read(name) || null : null;
  }
}

type ProviderEvents = { provider_events: readonly [ProviderEvent, ...ProviderEvent[]] };

/**
 * Returns the events in the mode of our payment if the provider runs on the own machine: such a
 * provider is a double, whose objects have any mode.
 */
export function inOurMode(
  account: Pick<StoredAccount, "settings">,
  { provider_events: [first, ...others] }: ProviderEvents,
  livemode: boolean,
): ProviderEvents {
  if (!isOnLoopback(account)) return { provider_events: [first, ...others] };
  const ours = (event: ProviderEvent): ProviderEvent => ({ ...event, livemode });
  return { provider_events: [ours(first), ...others.map(ours)] };
}

/** The addresses in the settings: `base_url`, and the list `rpc_urls` of a chain. */
function isOnLoopback({ settings }: Pick<StoredAccount, "settings">): boolean {
  const { base_url = "", rpc_urls = "" } = settings;
  return [base_url, ...rpc_urls.split(",")].some((text) => {
    const url = URL.parse(text.trim());
    return url !== null && isLoopback(url.hostname);
  });
}
