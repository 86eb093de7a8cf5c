/** An account on a chain, and books that remember the provider events of their payments. */

import { HDKey } from "@scure/bip32";
import { STABLECOINS } from "../../../shared/core/currency.ts";
import type { ProviderAccount, ProviderEvent } from "../../../shared/domain/providers/connector.ts";
import { ChainStore, type WatchedDeposit } from "../../../shared/store/chain_store.ts";
import { evmConnector } from "../../../shared/connectors/evm/evm_connector.ts";
import { depositAddress } from "../../../shared/connectors/evm/evm_address.ts";

const seed = new Uint8Array(32).fill(7);
/** The extended public key of the tests' wallet. */
export const XPUB = HDKey.fromMasterSeed(seed).derive("m/44'/60'/0'").publicExtendedKey;

/** A store of chains over a database without addresses and payouts. */
export const NO_CHAIN = noChain();

/** An account with these settings. */
export function chainAccount(settings: Record<string, string>): ProviderAccount {
  return {
    id: "pac_chain",
    environment_id: "env_chain",
    connector: "evm",
    settings: { network: "ethereum", chain_id: "31337", xpub: XPUB, ...settings },
    secret: null,
    notification_secrets: [],
  };
}

/** Books with `count` open payments. `poll` reads to the end and notes the provider events. */
export class WatchedBooks {
  readonly list: WatchedDeposit[];
  readonly provider_events = new Map<string, ProviderEvent>();
  cursor: unknown = null;
  /** The books as a connector reads them. */
  readonly store: ChainStore = Object.assign(noChain(), {
    watchedDeposits: (_account_id: string, after: number | null, limit: number) =>
      Promise.resolve(this.list.filter(({ index }) => index > (after ?? -1)).slice(0, limit)),
  });

  constructor(count: number, expires_at = "2999-01-01T00:00:00.000Z") {
    this.list = Array.from({ length: count }, (_, index) => ({
      index,
      payment_id: `pay_${index}`,
      address: depositAddress(XPUB, index),
      currency: "USDC",
      expires_at,
      is_open: true,
      has_open_events: false,
      unfinal: [],
    }));
  }

  /** Reads one pass. Returns the new provider events in order, each as `state amount payment`. */
  async poll(account: ProviderAccount): Promise<string[]> {
    const found: ProviderEvent[] = [];
    for (let more = true; more;) {
      const signal = AbortSignal.timeout(30_000);
      const page = await evmConnector(this.store).feed.poll(account, this.cursor, signal);
      // As the database does, the cursor passes through JSON.
      this.cursor = JSON.parse(JSON.stringify(page.cursor));
      for (const event of page.provider_events) {
        if (this.provider_events.has(event.reference)) continue;
        this.provider_events.set(event.reference, event);
        found.push(event);
        this.#note(event);
      }
      more = page.more;
    }
    return found.map((each) => `${each.state} ${each.amount_minor} ${each.subject_id}`);
  }

  #note({ state, subject_id, chain, currency, amount_minor }: ProviderEvent): void {
    const deposit = this.list.find(({ payment_id }) => payment_id === subject_id);
    if (deposit === undefined) return;
    const { tx_hash = "", log_index = 0, block_hash = "" } = chain ?? {};
    const known = deposit.unfinal.filter((each) =>
      each.tx_hash !== tx_hash || each.log_index !== log_index ||
      state !== "succeeded" && each.block_hash !== block_hash
    );
    const asset = STABLECOINS.find((each) => each === currency)!;
    const transfer = { tx_hash, log_index, block_hash, currency: asset, amount_minor };
    deposit.unfinal = state === "received" ? [...known, transfer] : known;
    if (state === "failed") deposit.is_open = false;
  }
}

function noChain(): ChainStore {
  return new ChainStore({ query: () => Promise.resolve([]) });
}
