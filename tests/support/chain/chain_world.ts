/**
 * A token with 6 decimals, compiled by solc 0.8.30 for "paris" with the optimizer (1 run), without
 * metadata:
 *
 * ```solidity
 * contract Token {
 *     string public symbol = "USDC";
 *     uint8 public constant decimals = 6;
 *     mapping(address => uint256) public balanceOf;
 *
 *     event Transfer(address indexed from, address indexed to, uint256 value);
 *
 *     constructor(uint256 supply) {
 *         balanceOf[msg.sender] = supply;
 *         emit Transfer(address(0), msg.sender, supply);
 *     }
 *
 *     function transfer(address to, uint256 value) public returns (bool) {
 *         require(balanceOf[msg.sender] >= value, "balance");
 *         balanceOf[msg.sender] -= value;
 *         balanceOf[to] += value;
 *         emit Transfer(msg.sender, to, value);
 *         return true;
 *     }
 * }
 * ```
 */

import { encodeAbiParameters, encodeFunctionData, parseAbi } from "viem";
import type { Anvil } from "./anvil.ts";

const TOKEN = "0x" +
  "60c060405260046080908152635553444360e01b60a0526000906100239082610138565b503480156100305760" +
  "0080fd5b5060405161059638038061059683398101604081905261004f916101f6565b33600081815260016020" +
  "9081526040808320859055518481527fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df5" +
  "23b3ef910160405180910390a35061020f565b634e487b7160e01b600052604160045260246000fd5b60018181" +
  "1c908216806100c357607f821691505b6020821081036100e357634e487b7160e01b6000526022600452602460" +
  "00fd5b50919050565b601f82111561013357806000526020600020601f840160051c8101602085101561011057" +
  "50805b601f840160051c820191505b81811015610130576000815560010161011c565b50505b505050565b8151" +
  "6001600160401b0381111561015157610151610099565b6101658161015f84546100af565b846100e9565b6020" +
  "601f82116001811461019957600083156101815750848201515b600019600385901b1c1916600184901b178455" +
  "610130565b600084815260208120601f198516915b828110156101c95787850151825560209485019460019092" +
  "0191016101a9565b50848210156101e75786840151600019600387901b60f8161c191681555b50505050600190" +
  "811b01905550565b60006020828403121561020857600080fd5b5051919050565b6103788061021e6000396000" +
  "f3fe608060405234801561001057600080fd5b506004361061004c5760003560e01c8063313ce5671461005157" +
  "806370a082311461007057806395d89b411461009e578063a9059cbb146100b3575b600080fd5b610059600681" +
  "565b60405160ff90911681526020015b60405180910390f35b61009061007e366004610268565b600160205260" +
  "00908152604090205481565b604051908152602001610067565b6100a66100d6565b604051610067919061028a" +
  "565b6100c66100c13660046102d8565b610164565b6040519015158152602001610067565b600080546100e390" +
  "610302565b80601f016020809104026020016040519081016040528092919081815260200182805461010f9061" +
  "0302565b801561015c5780601f106101315761010080835404028352916020019161015c565b82019190600052" +
  "6020600020905b81548152906001019060200180831161013f57829003601f168201915b505050505081565b33" +
  "6000908152600160205260408120548211156101b15760405162461bcd60e51b81526020600482015260076024" +
  "8201526662616c616e636560c81b604482015260640160405180910390fd5b3360009081526001602052604081" +
  "2080548492906101d0908490610352565b90915550506001600160a01b03831660009081526001602052604081" +
  "2080548492906101fd908490610365565b90915550506040518281526001600160a01b0384169033907fddf252" +
  "ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef9060200160405180910390a35060015b" +
  "92915050565b80356001600160a01b038116811461026357600080fd5b919050565b6000602082840312156102" +
  "7a57600080fd5b6102838261024c565b9392505050565b602081526000825180602084015260005b8181101561" +
  "02b8576020818601810151604086840101520161029b565b506000604082850101526040601f19601f83011684" +
  "010191505092915050565b600080604083850312156102eb57600080fd5b6102f48361024c565b946020939093" +
  "013593505050565b600181811c9082168061031657607f821691505b60208210810361033657634e487b7160e0" +
  "1b600052602260045260246000fd5b50919050565b634e487b7160e01b600052601160045260246000fd5b8181" +
  "03818111156102465761024661033c565b808201808211156102465761024661033c56";

/** An address in hex. */
export type Hex = `0x${string}`;

const ABI = parseAbi([
  "function transfer(address to, uint256 value)",
]);
const SUPPLY = 10n ** 15n;
/** Enough for each transaction, and set because the node would refuse one that it sees fail. */
const GAS = "0xf4240";

/** A chain with contracts and a payer. */
export class ChainWorld {
  private constructor(readonly node: Anvil, readonly payer: Hex) {}

  static async open(node: Anvil): Promise<ChainWorld> {
    const [payer] = await node.call<Hex[]>("eth_accounts");
    return new ChainWorld(node, payer!);
  }

  /** Deploys a token, all of which the payer has. */
  async deployToken(): Promise<Hex> {
    const supply = encodeAbiParameters([{ type: "uint256" }], [SUPPLY]);
    return await this.#deploy(TOKEN + supply.slice(2));
  }

  /**
   * Sends a transfer and returns the hash of its transaction. It is not in a block yet.
   * @param nonce by default the next one of the node
   */
  async transfer(token: Hex, to: string, amount: number, nonce?: number): Promise<Hex> {
    const args = [to as Hex, BigInt(amount)] as const;
    const data = encodeFunctionData({ abi: ABI, functionName: "transfer", args });
    return await this.#send(token, data, nonce);
  }

  async mine(blocks = 1): Promise<void> {
    await this.node.call("anvil_mine", `0x${blocks.toString(16)}`);
  }

  async #deploy(data: string): Promise<Hex> {
    const hash = await this.#send(undefined, data);
    await this.mine();
    const { contractAddress } = await this.node.call<{ contractAddress: Hex }>(
      "eth_getTransactionReceipt",
      hash,
    );
    return contractAddress;
  }

  async #send(to: string | undefined, data: string, nonce?: number): Promise<Hex> {
    return await this.node.call("eth_sendTransaction", {
      from: this.payer,
      data,
      gas: GAS,
      ...to && { to },
      ...nonce !== undefined && { nonce: `0x${nonce.toString(16)}` },
    });
  }
}
