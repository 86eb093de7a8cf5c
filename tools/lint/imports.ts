/**
 * Rules of `deno lint` for the house (docs/architecture.md §1): imports follow the arrows between
 * the folders, only the provider events move a payment, refund, dispute or transfer, and no function
 * is assigned to a member.
 */

const ROOT = new URL("../../", import.meta.url);

/** The folders that a folder imports, beside those that these reach. */
const ARROWS = readArrows(Deno.readTextFileSync(new URL("docs/architecture.md", ROOT)));

const APPLY = "shared/domain/operations/apply_event.ts";
/** The rules, which `applyEvent` alone reaches. */
const RULES = [
  "shared/domain/payments/apply_to_payment.ts",
  "shared/domain/payments/apply_to_refund.ts",
  "shared/domain/payments/apply_to_dispute.ts",
  "shared/domain/payments/received_money.ts",
  "shared/domain/transfers/apply_to_transfer.ts",
];
/** The steps, which write a status, and their exports that move nothing. Only rules take them. */
const STEPS: Readonly<Record<string, readonly string[]>> = {
  "shared/domain/payments/payment_steps.ts": ["CAPTURE_WINDOW_MS", "declineResponse"],
  "shared/domain/payments/refund_payment.ts": ["refundOf", "sampleRefund"],
  "shared/domain/payments/dispute_payment.ts": [
    "evidenceOf",
    "acceptanceOf",
    "StoredDispute",
    "isOpen",
    "sampleDispute",
    "invalidDisputeState",
  ],
  "shared/domain/transfers/transfer_steps.ts": [],
};
/** Adds the event of a new payment or transfer, and no other. */
const BEGINNING = "shared/domain/operations/operations.ts";
const FIRST_EVENTS = ["payment.created", "transfer.created"];
const AMENDS = "shared/domain/payments/apply_to_payment.ts";

/** Reads the diagram of the folders: `core["shared/core"]` is a folder, and `-->` an arrow. */
function readArrows(page: string): Readonly<Record<string, string[]>> {
  const [, diagram] = /^flowchart LR\n([^]*?)^```/m.exec(page)!;
  const folders = new Map(
    [...diagram!.matchAll(/(\w+)\["([^"]+)"\]/g)].map(([, ...pair]) => pair as [string, string]),
  );
  const arrows = [...diagram!.matchAll(/(\w+)(?:\[[^\]]+\])? --> (\w+)/g)];
  const found = [...folders.values()];
  const parts = [...Deno.readDirSync(new URL("shared/", ROOT))].filter((one) => one.isDirectory);
  const faults = [
    ...arrows.flatMap(([, ...ends]) => ends).filter((name) => !folders.has(name)),
    ...found.filter((folder) => !isFolder(folder)),
    ...parts.map(({ name }) => `shared/${name}`).filter((folder) => !found.includes(folder)),
  ];
  if (faults.length > 0) {
    throw new Error(
      `the diagram in docs/architecture.md lacks or misspells: ${[...new Set(faults)]}`,
    );
  }
  const targetsOf = (name: string) =>
    arrows.filter(([, from]) => from === name).map(([, , to]) => folders.get(to!)!);
  return Object.fromEntries([...folders].map(([name, folder]) => [folder, targetsOf(name)]));
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(new URL(path, ROOT)).isDirectory;
  } catch {
    return false;
  }
}

/** The innermost folder of the table that has a path; undefined: none. */
function folderOf(path: string): string | undefined {
  const parts = path.split("/");
  return [3, 2].map((depth) => parts.slice(0, depth).join("/")).find((one) => one in ARROWS);
}

function reachedFrom(folder: string): Set<string> {
  const reached = new Set([folder, folder.split("/").slice(0, 2).join("/")]);
  for (const at of reached) for (const to of ARROWS[at] ?? []) reached.add(to);
  return reached;
}

/** Returns why a module may not import names of another one; null: it may. */
function faultOf(from: string, to: string, names: readonly string[]): string | null {
  if (to.startsWith("tests/") && /^(?:apps|packages|shared|supabase)\//.test(from)) {
    return "a program imports no test";
  }
  const [folder, target] = [folderOf(from), folderOf(to)];
  if (from.startsWith("shared/") && !to.startsWith("shared/")) {
    return "shared/ imports only shared/";
  }
  if (folder !== undefined && target !== undefined && target !== folder) {
    const reached = reachedFrom(folder);
    const inner = target.startsWith("shared/domain/") && folder.startsWith("shared/domain/");
    if (!reached.has(target) && (inner || !reached.has(target.split("/", 2).join("/")))) {
      return `no arrow leads from ${folder} to ${target} in docs/architecture.md`;
    }
  }
  if (from.startsWith("packages/") && to.startsWith("apps/")) return "a package imports no program";
  if (!from.startsWith("shared/")) return null;
  const is_rule = RULES.includes(from);
  if (to in STEPS && !is_rule && !(from in STEPS)) {
    const moves = names.filter((name) => !STEPS[to]!.includes(name));
    if (moves.length > 0 || names.length === 0) return `only the rules take the step ${moves}`;
  }
  if (RULES.includes(to) && !is_rule && from !== APPLY) return "only applyEvent() calls the rules";
  return null;
}

function pathOf(filename: string): string {
  const url = filename.startsWith("file:") ? filename : `file://${filename}`;
  return url.startsWith(ROOT.href) ? url.slice(ROOT.href.length) : filename;
}

type Declaration = Deno.lint.ImportDeclaration | Deno.lint.ExportNamedDeclaration;

const plugin: Deno.lint.Plugin = {
  name: "house",
  rules: {
    imports: {
      create(context) {
        const path = pathOf(context.filename);
        const check = (node: Deno.lint.Node, specifier: string, names: readonly string[]) => {
          if (!specifier.startsWith(".")) return;
          const target = new URL(specifier, new URL(path, ROOT)).href.slice(ROOT.href.length);
          const message = faultOf(path, target, names);
          if (message !== null) context.report({ node, message });
        };
        const checkDeclaration = (node: Declaration) => {
          if (node.source === null) return;
          const names = node.specifiers.flatMap((one) => {
            const name = one.type === "ImportSpecifier"
              ? one.imported
              : one.type === "ExportSpecifier"
              ? one.local
              : null;
            return name?.type === "Identifier" ? [name.name] : [];
          });
          check(node, node.source.value, names);
        };
        return {
          ImportDeclaration: (node) => checkDeclaration(node),
          ExportNamedDeclaration: (node) => checkDeclaration(node),
          ExportAllDeclaration: (node) => check(node, node.source.value, []),
          ImportExpression: (node) => {
            if (node.source.type === "Literal") check(node, String(node.source.value), []);
          },
        };
      },
    },
    assigned_functions: {
      create(context) {
        if (!pathOf(context.filename).startsWith("shared/")) return {};
        const message = "V8 keeps what such a function holds until the next full collection: " +
          "see rule() in shared/schema/rule.ts";
        const check = (node: Deno.lint.Node) => context.report({ node, message });
        return {
          "AssignmentExpression[left.type='MemberExpression'][right.type=/FunctionExpression$/]":
            check,
          "MemberExpression[property.name='superRefine']": check,
        };
      },
    },
    moves: {
      create(context) {
        const path = pathOf(context.filename);
        if (!path.startsWith("shared/")) return {};
        return {
          "CallExpression[callee.property.name=/^add(Refund|Dispute)?Event$/]"(
            node: Deno.lint.CallExpression,
          ) {
            const [type] = node.arguments;
            const is_first = type?.type === "Literal" && FIRST_EVENTS.includes(String(type.value));
            if (path in STEPS || path === BEGINNING && is_first) return;
            context.report({ node, message: "only the steps add events of resources" });
          },
          "CallExpression > MemberExpression[property.name='amend']"(node) {
            if (path === AMENDS) return;
            context.report({ node, message: "only the card behind a token is amended" });
          },
        };
      },
    },
  },
};

export default plugin;
