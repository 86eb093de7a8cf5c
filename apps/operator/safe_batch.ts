/**
 * Batches for the Transaction Builder of Safe, format 1.0. Source of the format and its checksum:
 * github.com/safe-global/safe-react-apps, apps/tx-builder.
 */

import { keccak_256 } from "@noble/hashes/sha3.js";

interface SafeCall {
  /** The contract, EIP-55. */
  to: string;
  /** Encoded, with 0x. */
  data: string;
}

/** Makes a batch. @param at_ms Unix milliseconds */
export function safeBatch(
  chain_id: number,
  safe: string | null,
  calls: readonly SafeCall[],
  at_ms: number,
): Record<string, unknown> {
  const batch = {
    version: "1.0",
    chainId: String(chain_id),
    createdAt: at_ms,
    meta: {
      name: "Payouts",
      description: "",
      txBuilderVersion: "1.18.2",
      createdFromSafeAddress: safe ?? "",
      createdFromOwnerAddress: "",
    },
    transactions: calls.map(({ to, data }) => ({
      to,
      value: "0",
      data,
      contractMethod: null,
      contractInputsValues: null,
    })),
  };
  return { ...batch, meta: { ...batch.meta, checksum: checksumOf(batch) } };
}

/** Hashes the batch without its name, in Safe's own serialization. */
function checksumOf({ meta, ...batch }: { meta: Record<string, unknown> }): string {
  const text = serialize({ ...batch, meta: { ...meta, name: null } });
  return `0x${new Uint8Array(keccak_256(new TextEncoder().encode(text))).toHex()}`;
}

function serialize(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(serialize).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([one], [other]) => one < other ? -1 : 1);
  const names = JSON.stringify(members.map(([name]) => name));
  return `{${names}${members.map(([, member]) => `${serialize(member)},`).join("")}}`;
}
