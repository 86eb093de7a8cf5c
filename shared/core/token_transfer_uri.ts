/** The links that ask a wallet for a transfer of tokens (EIP-681). */

/** A transfer of tokens that a wallet is asked to make. */
interface TokenTransfer {
  contract: string;
  /** EIP-155. */
  chain_id: number;
  /** The receiver. */
  address: string;
  amount_minor: number;
}

/** Makes the EIP-681 link of a transfer. Wallets read it from a QR code. */
export function tokenTransferUri(transfer: TokenTransfer): string {
  const { contract, chain_id, address, amount_minor } = transfer;
  return `ethereum:${contract}@${chain_id}/transfer?address=${address}&uint256=${amount_minor}`;
}

/** Returns the link for another amount. */
export function withTransferAmount(uri: string, amount_minor: number): string {
  return uri.replace(/(?<=[?&]uint256=)\d+/, String(amount_minor));
}
