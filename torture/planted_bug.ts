/** A bug that `deno task planted-bugs` puts into a copy of the project. */

/** A known bug. */
export interface PlantedBug {
  name: string;
  edits: { file: string; find: string; replace: string }[];
  /** The test file or the run of the torture that must fail. */
  noticed_by: string;
}
