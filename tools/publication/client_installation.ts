/** How a project installs the client: from a clone until the registry has it. */

import CLIENT from "../../packages/client/package.json" with { type: "json" };
import { PUBLICATION } from "./publication.ts";

/** The file that `npm pack ./packages/client` writes. */
export const CLIENT_ARCHIVE = `${CLIENT.name.slice(1).replace("/", "-")}-${CLIENT.version}.tgz`;

/** The comments with which code samples begin. */
export const CLIENT_INSTALLATION: readonly string[] = PUBLICATION.is_published
  ? [`// npm install ${CLIENT.name}`]
  : ["// In a clone: npm pack ./packages/client", `// npm install ${CLIENT_ARCHIVE}`];
