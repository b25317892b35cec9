// An S3 server over a directory, of the packages of versitygw: server DIRECTORY ADDRESS, with the key and the secret of
// the environment. Each directory in it is a bucket.
package main

import (
	"log"
	"os"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"
)

func main() {
	root := middlewares.RootUserConfig{Access: os.Getenv("AWS_ACCESS_KEY_ID"), Secret: os.Getenv("AWS_SECRET_ACCESS_KEY")}
	account := auth.Account{Access: root.Access, Secret: root.Secret, Role: auth.RoleAdmin}
	backend, err := posix.New(os.Args[1], meta.XattrMeta{}, posix.PosixOpts{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := s3api.New(
		backend, root, "us-east-1", auth.NewIAMServiceSingle(account), nil, nil, nil, nil,
		s3api.WithQuiet(), s3api.WithKeepAlive(), s3api.WithConcurrencyLimiter(256, 256), s3api.WithMpMaxParts(10000),
	)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server.ServeMultiPort(os.Args[2:]))
}
