/**
 * The parts of documents that say how to get the service and the packages: from a clone, or from
 * the registries once they have a version (tools/publication/publication.ts).
 */

import CLIENT from "../../packages/client/package.json" with { type: "json" };
import PACKAGE from "../../packages/sandbox/package.json" with { type: "json" };
import { CLIENT_ARCHIVE } from "../publication/client_installation.ts";
import { PUBLICATION, type Publication } from "../publication/publication.ts";

const NODE = "[Node.js](https://nodejs.org) 20 or newer";
const ARCHIVE = `${PACKAGE.name}-${PACKAGE.version}.tgz`;
/** Deno fetches only what the service imports. Without the option a task fetches every package. */
const START = "npx -y deno@2.9.6 task --node-modules-dir=manual start";

/** Where the programs of the README import the client from in a clone. */
const IMPORTS = [
  [/(?<=import { verifyWebhook } from )"[^"]*"/, "../packages/client/webhook_signature.ts"],
  [/(?<=import { PaymentsClient } from )"[^"]*"/, "./packages/client/mod.ts"],
] as const;

/** Returns a page with the text in one of its blocks. Throws if a marker is missing. */
const pageWith =
  (block: string, render: (publication: Publication) => string) =>
  (committed: string, publication = PUBLICATION) => {
    const [begin, end] = [`<!-- generated: ${block} -->`, `<!-- end: ${block} -->`];
    const [from, to] = [committed.indexOf(begin), committed.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`the markers ${begin} and ${end} are missing`);
    const text = render(publication);
    return `${committed.slice(0, from)}${begin}\n\n${text}\n\n${committed.slice(to)}`;
  };

/** Returns README.md with its first command and its imports. */
export function renderReadme(committed: string, publication = PUBLICATION): string {
  const readme = pageWith("start", renderStart)(committed, publication);
  return IMPORTS.reduce((text, [place, in_clone]) => {
    const from = publication.is_published ? `npm:${CLIENT.name}` : in_clone;
    return text.replace(place, `"${from}"`);
  }, readme);
}

function renderStart({ is_published, repository }: Publication): string {
  if (is_published) {
    return `You need ${NODE}. Start the service in a new folder:

\`\`\`console
npx ${PACKAGE.name} start
\`\`\`

For the tests of your project run \`npm install --save-dev ${PACKAGE.name}\`
([how](docs/testing.md)). In a clone, \`${START}\`
starts it from the sources.`;
  }
  return `You need [Git](https://git-scm.com) and ${NODE}. Clone this
repository and start the service in the folder of the clone:

\`\`\`console
git clone ${repository ?? "<the URL of this repository>"} payments
cd payments
${START}
\`\`\`

The option leaves out the packages that only tests need. No registry has the npm package yet:
\`npx -y deno@2.9.6 task package\` makes it for the tests of your project ([how](docs/testing.md)).`;
}

/** Returns docs/testing.md with the installation of the npm package. */
export const renderTestingPage = pageWith("installation", ({ is_published }) => {
  if (is_published) {
    return `Install it in the folder of your project:

\`\`\`sh
npm install --save-dev ${PACKAGE.name}
\`\`\``;
  }
  return `It is in no registry, so you make its archive in a clone of this project and keep the archive in
your project.

1. Make the archive in the clone. This prints its path:

   \`\`\`sh
   npx -y deno@2.9.6 task package
   \`\`\`

2. In the folder of your project copy the archive and install it. \`clone\` is the path of the clone.
   Commit the archive, \`package.json\` and \`package-lock.json\`: then \`npm ci\` works in CI and for
   everybody. After a new archive run the commands again.

   \`\`\`sh
   mkdir -p vendor
   cp "$clone/artifacts/${ARCHIVE}" vendor/
   npm install --save-dev ./vendor/${ARCHIVE}
   \`\`\``;
});

/** Returns packages/sandbox/README.md, which npm shows, with installation and first start. */
export const renderPackageReadme = pageWith("installation", ({ is_published }) => {
  if (is_published) {
    return `\`\`\`console
npx ${PACKAGE.name} start
\`\`\``;
  }
  return `The package is in no registry: [a page of the project](../../docs/testing.md) says how to make and
install it.

\`\`\`console
npx --no-install ${PACKAGE.name} start
\`\`\``;
});

/** Returns packages/client/README.md with the installation. */
export const renderClientReadme = pageWith("installation", ({ is_published }) => {
  if (is_published) {
    return `Install it from npm, as ES modules:

\`\`\`console
npm install ${CLIENT.name}
\`\`\`

On Deno and in an edge function use \`deno add jsr:${CLIENT.name}\`.`;
  }
  return `Build and install it from a clone, as ES modules. Run this in the folder of your project, with
\`clone\` as the path of the clone:

\`\`\`console
npm pack "$clone/packages/client"
npm install ./${CLIENT_ARCHIVE}
\`\`\`

On Deno and in an edge function import \`mod.ts\` of that folder without a build.`;
});
