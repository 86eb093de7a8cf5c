/** Name and version of the npm package. package.json is the only place that has them. */

import PACKAGE from "./package.json" with { type: "json" };

/** The name of the package and of its program. */
export const PACKAGE_NAME: string = PACKAGE.name;
/** The version of the package. */
export const PACKAGE_VERSION: string = PACKAGE.version;
