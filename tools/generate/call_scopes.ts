/** The scopes of the client's calls, for the console (`apps/console/data/call_scopes.ts`). */

import { CLIENT_METHODS } from "./code_samples/client_methods.ts";
import { ADDRESSES } from "./openapi/operations.ts";

export function renderCallScopes(): string {
  const lines = Object.entries(CLIENT_METHODS).map(([id, method]) => {
    const { operation } = ADDRESSES.find(({ operation }) => operation.id === id)!;
    return `  ${JSON.stringify(method)}: ${JSON.stringify(operation.scope)},\n`;
  });
  return "/** The scope that each call of the client needs; null: any key may make it. Generated. */\n" +
    `export const CALL_SCOPES = {\n${lines.join("")}} as const;\n`;
}
