/**
 * The order of the pages of the documentation, and the address of each file of the project in it. A
 * page of `docs/` that is not in the order is shown in the last section.
 */

/** A section of the navigation: files of the project, each with its name there. */
interface Section {
  title: string;
  pages: readonly (readonly [path: string, label: string])[];
}

/** The page at the address of the folder. */
export const HOME = "README.md";

/** The sections. Every other page of `docs/` follows in the section `OTHER_PAGES`. */
export const SECTIONS: readonly Section[] = [
  {
    title: "Start",
    pages: [
      [HOME, "Overview"],
      ["docs/tutorial.md", "Tutorial"],
      ["docs/coming-from-stripe.md", "Coming from Stripe"],
      ["docs/testing.md", "Test with it"],
      ["docs/console.md", "Console"],
    ],
  },
  {
    title: "Sandbox tutorials",
    pages: [
      ["docs/tutorials/a_sandbox_for_every_pull_request.md", "A sandbox for every pull request"],
      ["docs/tutorials/a_link_that_sells.md", "A link that sells"],
      ["docs/tutorials/a_month_in_a_second.md", "A month in a second"],
      ["docs/tutorials/a_year_of_renewals.md", "A year of renewals"],
      ["docs/tutorials/break_it_on_purpose.md", "Break it on purpose"],
      ["docs/tutorials/the_same_bytes_every_run.md", "The same bytes every run"],
    ],
  },
  {
    title: "Build",
    pages: [
      ["packages/client/README.md", "TypeScript client"],
      ["docs/clients.md", "Go, Python and Java"],
      ["docs/agents.md", "AI agents"],
      ["docs/webhook_verification.md", "Verify webhooks"],
      ["examples/express_shop/README.md", "Example: Express"],
      ["examples/fastapi_shop/README.md", "Example: FastAPI"],
      ["examples/supabase_orders/README.md", "Example: Supabase"],
    ],
  },
  {
    title: "Look up",
    pages: [
      ["docs/errors.md", "Errors and test values"],
      ["docs/contract.md", "Contract"],
      ["docs/versioning.md", "Versions"],
      ["CHANGELOG.md", "Changelog"],
    ],
  },
  {
    title: "Operate",
    pages: [
      ["docs/operations/deploy.md", "Deploy to Supabase"],
      ["docs/operations/configuration.md", "Configuration"],
      ["docs/operations/backup.md", "Backup and restore"],
      ["docs/operations/monitoring.md", "Monitoring"],
      ["docs/production.md", "Production without Supabase"],
      ["docs/scaling.md", "Scaling"],
      ["docs/going-live/stripe.md", "Going live with Stripe"],
      ["docs/going-live/chain.md", "Going live with stablecoins"],
      ["docs/going-live/bank.md", "Going live with your bank"],
      ["docs/security.md", "Security"],
      ["docs/reliability.md", "Reliability"],
      ["docs/benchmarks.md", "Benchmarks"],
    ],
  },
  {
    title: "Change the service",
    pages: [
      ["CONTRIBUTING.md", "Contributing"],
      ["docs/recipes.md", "Recipes"],
      ["docs/architecture.md", "Architecture"],
    ],
  },
];

/** The folder whose pages explain the design, and the title of their section. */
export const DECISIONS = { folder: "docs/decisions/", title: "Decisions" };
/** The title of the section for pages that no other section names. */
export const OTHER_PAGES = "More";

/** The form in which the documentation shows a file or folder of the project. */
export type Kind = "page" | "source" | "file" | "folder";

/** Returns how a path of the project is shown. */
export function kindOf(path: string, is_folder: boolean): Kind {
  if (is_folder) return "folder";
  if (path.endsWith(".md")) return "page";
  // Pictures and the OpenAPI document are useful as they are; a program is easier to read as a
  // page.
  return path.startsWith("docs/") ? "file" : "source";
}

export function addressOf(path: string, kind: Kind): string {
  if (path === HOME) return "index.html";
  const place = path.startsWith("docs/") ? path.slice("docs/".length) : `project/${path}`;
  switch (kind) {
    case "page":
      return place.replace(/\.md$/, ".html");
    case "folder":
      return `${place}/index.html`;
    case "source":
      return `${place}.html`;
    case "file":
      return place;
  }
}
